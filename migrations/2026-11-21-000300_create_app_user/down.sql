DROP TABLE labdata.app_user;
