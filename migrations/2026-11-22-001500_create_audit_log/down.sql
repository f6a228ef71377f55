DROP TABLE labdata.audit_entry;
DROP FUNCTION labdata.refuse_change_of_audit_entry;
DROP TABLE labdata.audit_chain;
