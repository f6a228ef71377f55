DROP TABLE labdata.oidc_used_attempt;
DROP TABLE labdata.oidc_session;
DROP TABLE labdata.oidc_account;
