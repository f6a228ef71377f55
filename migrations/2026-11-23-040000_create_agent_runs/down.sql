ALTER TABLE labdata.agent_chat
    DROP COLUMN input_tokens,
    DROP COLUMN output_tokens,
    DROP COLUMN total_tokens;
DROP TABLE labdata.agent_usage;
DROP TABLE labdata.agent_run;
