mod declaration;
mod readers;
