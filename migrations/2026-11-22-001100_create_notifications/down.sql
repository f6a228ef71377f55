DROP FUNCTION labdata.send_notification;
DROP TABLE labdata.notice;
DROP TABLE labdata.notification_email;
DROP TABLE labdata.notification_preference;
DROP TABLE labdata.notification;
