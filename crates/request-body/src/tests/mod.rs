mod declaration;
mod output;
mod readers;
