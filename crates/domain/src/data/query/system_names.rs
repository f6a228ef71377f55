//! System names of PostgreSQL that queries may not use.

/// Functions that begin with `pg_` and only compute.
const HARMLESS: [&str; 3] = ["pg_typeof", "pg_size_pretty", "pg_size_bytes"];

/// Functions that change state, wait, signal, run SQL, or reveal data of others.
const FUNCTIONS: [&str; 36] = [
    "acldefault",
    "aclexplode",
    "aclinsert",
    "aclitemin",
    "aclitemout",
    "aclremove",
    "col_description",
    "current_setting",
    "currtid2",
    "currval",
    "cursor_to_xml",
    "cursor_to_xmlschema",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "database_to_xmlschema",
    "format_type",
    "lastval",
    "loread",
    "lowrite",
    "makeaclitem",
    "nextval",
    "obj_description",
    "oidvectortypes",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "schema_to_xmlschema",
    "set_config",
    "setval",
    "shobj_description",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "table_to_xmlschema",
    "ts_stat",
];

/// Prefixes of further such functions.
const FUNCTION_FAMILIES: [&str; 8] = [
    "binary_upgrade_",
    "brin_",
    "dblink",
    "inet_",
    "lo_",
    "to_reg",
    "ts_rewrite",
    "txid_",
];

/// Types whose values are names of objects, and prefixes of their functions.
const NAME_TYPES: [&str; 8] = [
    "regclass",
    "regcollation",
    "regnamespace",
    "regoper",
    "regproc",
    "regrole",
    "regtype",
    "aclitem",
];

/// Schemas that queries may not name.
const SCHEMAS: [&str; 6] = [
    "information_schema",
    "labdata",
    "pg_catalog",
    "pg_temp",
    "pg_toast",
    "public",
];

/// Catalogs and views of PostgreSQL 13 to 18, except those that begin with `pg_stat`.
const CATALOGS: &[&str] = &[
    "pg_aggregate",
    "pg_aios",
    "pg_am",
    "pg_amop",
    "pg_amproc",
    "pg_attrdef",
    "pg_attribute",
    "pg_auth_members",
    "pg_authid",
    "pg_available_extension_versions",
    "pg_available_extensions",
    "pg_backend_memory_contexts",
    "pg_cast",
    "pg_class",
    "pg_collation",
    "pg_config",
    "pg_constraint",
    "pg_conversion",
    "pg_cursors",
    "pg_database",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_event_trigger",
    "pg_extension",
    "pg_file_settings",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_group",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_index",
    "pg_indexes",
    "pg_inherits",
    "pg_init_privs",
    "pg_language",
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_locks",
    "pg_matviews",
    "pg_namespace",
    "pg_opclass",
    "pg_operator",
    "pg_opfamily",
    "pg_parameter_acl",
    "pg_partitioned_table",
    "pg_policies",
    "pg_policy",
    "pg_prepared_statements",
    "pg_prepared_xacts",
    "pg_proc",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_publication_tables",
    "pg_range",
    "pg_replication_origin",
    "pg_replication_origin_status",
    "pg_replication_slots",
    "pg_rewrite",
    "pg_roles",
    "pg_rules",
    "pg_seclabel",
    "pg_seclabels",
    "pg_sequence",
    "pg_sequences",
    "pg_settings",
    "pg_shadow",
    "pg_shdepend",
    "pg_shdescription",
    "pg_shmem_allocations",
    "pg_shmem_allocations_numa",
    "pg_shseclabel",
    "pg_subscription",
    "pg_subscription_rel",
    "pg_tables",
    "pg_tablespace",
    "pg_timezone_abbrevs",
    "pg_timezone_names",
    "pg_transform",
    "pg_trigger",
    "pg_ts_config",
    "pg_ts_config_map",
    "pg_ts_dict",
    "pg_ts_parser",
    "pg_ts_template",
    "pg_type",
    "pg_user",
    "pg_user_mapping",
    "pg_user_mappings",
    "pg_views",
    "pg_wait_events",
];

/// Returns true if queries may not call a function of that name.
pub(super) fn is_forbidden_function(name: &str) -> bool {
    // By prefix, because a list of those to forbid would miss the functions of later versions.
    let server = name.starts_with("pg_") && !HARMLESS.contains(&name);
    server
        || FUNCTIONS.contains(&name)
        || (name.starts_with("has_") && name.ends_with("_privilege"))
        || FUNCTION_FAMILIES
            .iter()
            .any(|family| name.starts_with(family))
        || NAME_TYPES
            .iter()
            .any(|name_type| name.starts_with(name_type))
}

/// Returns true if queries may not cast to or call a type of that name.
pub(super) fn is_forbidden_type(name: &str) -> bool {
    NAME_TYPES.contains(&name) || matches!(name, "regprocedure" | "regoperator")
}

/// Returns true if queries may not name that schema.
pub(super) fn is_forbidden_schema(name: &str) -> bool {
    // The digits may be followed by the ending of an organization's other schemas, such as
    // `_chunks`.
    let organizations = name.strip_prefix("org_").is_some_and(|rest| {
        rest.len() >= 32 && rest.bytes().take(32).all(|byte| byte.is_ascii_hexdigit())
    });
    organizations || SCHEMAS.contains(&name)
}

/// Returns true for a catalog of the server. Other names that begin with `pg_` may belong to a
/// laboratory: picograms.
pub(super) fn is_catalog(name: &str) -> bool {
    let statistics = ["pg_stat_", "pg_statio_", "pg_statistic", "pg_stats"];
    CATALOGS.contains(&name) || statistics.iter().any(|start| name.starts_with(start))
}
