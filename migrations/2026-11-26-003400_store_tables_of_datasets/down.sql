-- With the views for queries over it, which the first query makes again.
ALTER TABLE labdata.dataset DROP COLUMN tables CASCADE;
