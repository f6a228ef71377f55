-- Names without white space around them, in Unicode's composed form, as new ones are stored. Names that would become equal stay
-- as they are. Other encodings than UTF-8 have no such form.
CREATE FUNCTION labdata.stored_name(name text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT regexp_replace(
        CASE WHEN getdatabaseencoding() = 'UTF8' THEN normalize(name, NFC) ELSE name END,
        '^[[:space:]]+|[[:space:]]+$', '', 'g'
    )
$$;

UPDATE labdata.job r SET name = labdata.stored_name(r.name)
-- The name of the platform's own job is no other's.
WHERE labdata.stored_name(r.name) NOT IN (r.name, 'Read instrument file') AND NOT EXISTS (
    SELECT FROM labdata.job o
    WHERE o.organization_id = r.organization_id AND o.id <> r.id
    AND labdata.stored_name(o.name) = labdata.stored_name(r.name)
);
UPDATE labdata.instrument r SET name = labdata.stored_name(r.name)
WHERE labdata.stored_name(r.name) <> r.name AND NOT EXISTS (
    SELECT FROM labdata.instrument o
    WHERE o.organization_id = r.organization_id AND o.id <> r.id
    AND labdata.stored_name(o.name) = labdata.stored_name(r.name)
);
UPDATE labdata.saved_view r SET name = labdata.stored_name(r.name)
WHERE labdata.stored_name(r.name) <> r.name AND NOT EXISTS (
    SELECT FROM labdata.saved_view o
    WHERE o.organization_id = r.organization_id AND o.id <> r.id
    AND labdata.stored_name(o.name) = labdata.stored_name(r.name)
);
UPDATE labdata.ml_model r SET name = labdata.stored_name(r.name)
WHERE labdata.stored_name(r.name) <> r.name AND NOT r.archived AND NOT EXISTS (
    SELECT FROM labdata.ml_model o
    WHERE o.organization_id = r.organization_id AND o.id <> r.id AND NOT o.archived
    AND labdata.stored_name(o.name) = labdata.stored_name(r.name)
);
UPDATE labdata.user_group r SET name = labdata.stored_name(r.name)
WHERE labdata.stored_name(r.name) <> r.name AND NOT EXISTS (
    SELECT FROM labdata.user_group o
    WHERE o.organization_id = r.organization_id AND o.id <> r.id
    AND labdata.stored_name(o.name) = labdata.stored_name(r.name)
);
-- Labels name no record: those that become equal are one label.
UPDATE labdata.annotation SET label = labdata.stored_name(label) WHERE labdata.stored_name(label) <> label;

-- Catalogs that were read before name the groups.
UPDATE labdata.organization SET catalog_version = catalog_version + 1;

DROP FUNCTION labdata.stored_name(text);
