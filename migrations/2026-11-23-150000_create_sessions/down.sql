DROP TABLE labdata.sign_in_link;
DROP TABLE labdata.session;
