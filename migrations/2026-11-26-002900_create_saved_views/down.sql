DROP TABLE labdata.saved_view;
