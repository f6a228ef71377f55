-- Tables whose data a response shows, by their ids; core tables have none and are named. It is repeated only to who may see
-- them. What an earlier version stored names none, and expires within a day.
ALTER TABLE labdata.idempotency_key ADD COLUMN tables text[] NOT NULL DEFAULT '{}';
