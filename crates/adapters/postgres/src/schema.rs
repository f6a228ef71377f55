//! The platform's tables, as the migrations make them; those that dynamic SQL alone uses (catalog,
//! ledger, idempotency keys) are left out.

diesel::table! {
    labdata.organization (id) {
        id -> Uuid,
        name -> Text,
        schema_name -> Text,
        catalog_version -> BigInt,
        created_at -> Timestamptz,
        history_since -> Timestamptz,
    }
}

diesel::table! {
    labdata.app_user (id) {
        id -> Uuid,
        organization_id -> Uuid,
        email -> Text,
        email_folded -> Text,
        name -> Text,
        created_at -> Timestamptz,
        disabled_at -> Nullable<Timestamptz>,
        role -> Text,
    }
}

diesel::table! {
    labdata.server_secret (purpose) {
        purpose -> Text,
        secret -> Bytea,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.instrument (id) {
        id -> Uuid,
        organization_id -> Uuid,
        name -> Text,
        description -> Nullable<Text>,
        instrument_type -> Nullable<Text>,
        created_at -> Timestamptz,
        reader -> Nullable<Text>,
        timezone -> Nullable<Text>,
        last_reader -> Nullable<Text>,
    }
}

diesel::table! {
    labdata.device (organization_id, instrument_id) {
        organization_id -> Uuid,
        instrument_id -> Uuid,
        status -> Text,
        first_seen -> Timestamptz,
        last_seen -> Timestamptz,
        app_version -> Nullable<Text>,
        is_watching -> Nullable<Bool>,
        since -> Timestamptz,
        queued_files -> Nullable<BigInt>,
        detail -> Nullable<Jsonb>,
        beats -> BigInt,
        announced_status -> Text,
        outage_noticed -> Bool,
    }
}

diesel::table! {
    labdata.device_period (organization_id, instrument_id, first_seen) {
        organization_id -> Uuid,
        instrument_id -> Uuid,
        first_seen -> Timestamptz,
        last_seen -> Timestamptz,
        status -> Text,
        app_version -> Nullable<Text>,
        is_watching -> Nullable<Bool>,
    }
}

diesel::table! {
    labdata.dataset (id) {
        id -> Uuid,
        organization_id -> Uuid,
        name -> Text,
        description -> Nullable<Text>,
        column_definitions -> Jsonb,
        row_count -> BigInt,
        source_query -> Nullable<Text>,
        source_file_id -> Nullable<Uuid>,
        object_key -> Uuid,
        size_bytes -> BigInt,
        created_by -> Uuid,
        created_at -> Timestamptz,
        source_label -> Nullable<Text>,
        tables -> Array<Text>,
    }
}

diesel::table! {
    labdata.job (id) {
        id -> Uuid,
        organization_id -> Uuid,
        name -> Text,
        description -> Nullable<Text>,
        archived -> Bool,
        created_at -> Timestamptz,
        version_number -> Nullable<BigInt>,
        revision -> BigInt,
        parameter_definitions -> Jsonb,
        publish_status -> Text,
        published_version -> Nullable<BigInt>,
    }
}

diesel::table! {
    labdata.job_trigger (id) {
        id -> Uuid,
        organization_id -> Uuid,
        job_id -> Uuid,
        category -> Text,
        instrument_id -> Nullable<Uuid>,
        conditions -> Jsonb,
        source_job_id -> Nullable<Uuid>,
        set_by -> Uuid,
        armed_at -> Timestamptz,
        next_fire_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    labdata.job_version (organization_id, job_id, version_number) {
        job_id -> Uuid,
        organization_id -> Uuid,
        version_number -> BigInt,
        code -> Text,
        created_by -> Uuid,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.job_execution (id) {
        id -> Uuid,
        organization_id -> Uuid,
        job_id -> Uuid,
        origin -> Text,
        status -> Text,
        deadline -> Nullable<Timestamptz>,
        error_message -> Nullable<Text>,
        started_by -> Uuid,
        api_key_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
        started_at -> Nullable<Timestamptz>,
        completed_at -> Nullable<Timestamptz>,
        script_version -> Nullable<BigInt>,
        trigger_file_id -> Nullable<Uuid>,
        parameters -> Nullable<Jsonb>,
        source_execution_id -> Nullable<Uuid>,
        exit_code -> Nullable<BigInt>,
        trigger_id -> Nullable<Uuid>,
        run_scopes -> Nullable<Array<Text>>,
        retry_of_execution_id -> Nullable<Uuid>,
        retried_by_execution_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    labdata.work (id) {
        id -> Uuid,
        organization_id -> Uuid,
        kind -> Text,
        execution_id -> Nullable<Uuid>,
        model_version_id -> Nullable<Uuid>,
        state -> Text,
        queued_at -> Timestamptz,
        attempt -> BigInt,
        lost_workers -> BigInt,
        lease_expires_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    labdata.work_log (organization_id, work_id) {
        work_id -> Uuid,
        organization_id -> Uuid,
        attempt -> BigInt,
        length -> BigInt,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    labdata.work_log_chunk (organization_id, work_id, start) {
        work_id -> Uuid,
        organization_id -> Uuid,
        start -> BigInt,
        bytes -> Bytea,
    }
}

diesel::table! {
    labdata.run_nonce (execution_id) {
        execution_id -> Uuid,
        organization_id -> Uuid,
        attempt -> BigInt,
        user_id -> Uuid,
        scopes -> Array<Text>,
        hash -> Bytea,
        expires_at -> Timestamptz,
        key_expires_at -> Nullable<Timestamptz>,
        used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    labdata.api_key (id) {
        id -> Uuid,
        organization_id -> Uuid,
        user_id -> Uuid,
        name -> Text,
        prefix -> Text,
        hash -> Bytea,
        scopes -> Array<Text>,
        execution_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        last_used_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        tables -> Nullable<Array<Text>>,
    }
}

diesel::table! {
    labdata.invitation (id) {
        id -> Uuid,
        organization_id -> Uuid,
        email -> Text,
        role -> Text,
        groups -> Array<Uuid>,
        token_hash -> Bytea,
        created_by -> Uuid,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.file (id) {
        id -> Uuid,
        organization_id -> Uuid,
        instrument_id -> Nullable<Uuid>,
        job_execution_id -> Nullable<Uuid>,
        source_type -> Text,
        status -> Text,
        original_path -> Text,
        file_name -> Text,
        path_folded -> Text,
        extension -> Nullable<Text>,
        path_hash -> Bytea,
        content_type -> Text,
        object_key -> Uuid,
        upload_expires_at -> Nullable<Timestamptz>,
        size_bytes -> Nullable<BigInt>,
        crc32c -> Nullable<Text>,
        uploaded_at -> Nullable<Timestamptz>,
        file_created_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.agent_chat (id) {
        id -> Uuid,
        organization_id -> Uuid,
        user_id -> Uuid,
        title -> Text,
        message_count -> BigInt,
        size_bytes -> BigInt,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        input_tokens -> Nullable<BigInt>,
        output_tokens -> Nullable<BigInt>,
        total_tokens -> Nullable<BigInt>,
    }
}

diesel::table! {
    labdata.agent_run (id) {
        id -> Uuid,
        organization_id -> Uuid,
        user_id -> Uuid,
        lease_until -> Timestamptz,
        cancel_requested -> Bool,
    }
}

diesel::table! {
    labdata.agent_usage (organization_id, month) {
        organization_id -> Uuid,
        month -> Timestamptz,
        input_tokens -> BigInt,
        output_tokens -> BigInt,
        total_tokens -> BigInt,
    }
}

diesel::table! {
    labdata.agent_chat_file (organization_id, id) {
        organization_id -> Uuid,
        id -> Uuid,
        chat_id -> Uuid,
        name -> Text,
        media_type -> Text,
        size_bytes -> BigInt,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.annotation (organization_id, id) {
        organization_id -> Uuid,
        id -> Uuid,
        file_id -> Uuid,
        job_execution_id -> Nullable<Uuid>,
        label -> Text,
        object_key -> Uuid,
        size_bytes -> BigInt,
        width -> BigInt,
        height -> BigInt,
        foreground -> BigInt,
        box_x -> BigInt,
        box_y -> BigInt,
        box_width -> BigInt,
        box_height -> BigInt,
        is_human_vetted -> Bool,
        created_by -> Uuid,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.dataset_mask (organization_id, id) {
        organization_id -> Uuid,
        id -> Uuid,
        dataset_id -> Uuid,
        size_bytes -> BigInt,
    }
}

diesel::table! {
    labdata.agent_message (organization_id, chat_id, position) {
        organization_id -> Uuid,
        chat_id -> Uuid,
        position -> BigInt,
        role -> Text,
        content -> Text,
        tool_calls -> Jsonb,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.event (id) {
        id -> Uuid,
        organization_id -> Uuid,
        kind -> Text,
        file_id -> Nullable<Uuid>,
        job_execution_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.notification (organization_id, id) {
        id -> Uuid,
        organization_id -> Uuid,
        user_id -> Uuid,
        dedupe_key -> Text,
        title -> Text,
        body -> Text,
        action_url -> Text,
        data -> Nullable<Jsonb>,
        sender_kind -> Text,
        sender_name -> Text,
        api_key_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
        read_at -> Nullable<Timestamptz>,
        user_nth -> Nullable<BigInt>,
        organization_nth -> Nullable<BigInt>,
    }
}

diesel::table! {
    labdata.notice (id) {
        id -> Uuid,
        organization_id -> Uuid,
        job_execution_id -> Nullable<Uuid>,
        model_version_id -> Nullable<Uuid>,
        recorded_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.notification_preference (organization_id, user_id) {
        user_id -> Uuid,
        organization_id -> Uuid,
        message_inbox -> Bool,
        message_email -> Bool,
    }
}

diesel::table! {
    labdata.notification_email (notification_id, organization_id) {
        notification_id -> Uuid,
        organization_id -> Uuid,
        status -> Text,
        tries -> BigInt,
        due_at -> Timestamptz,
        last_error -> Nullable<Text>,
        settled_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    labdata.ml_model (id) {
        id -> Uuid,
        organization_id -> Uuid,
        name -> Text,
        archived -> Bool,
        version_number -> BigInt,
        active_version_number -> Nullable<BigInt>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.ml_model_version (id) {
        id -> Uuid,
        organization_id -> Uuid,
        model_id -> Uuid,
        version_number -> BigInt,
        description -> Nullable<Text>,
        dataset_id -> Uuid,
        task_type -> Text,
        problem_type -> Text,
        quality_preset -> Text,
        target_column -> Text,
        feature_columns -> Array<Text>,
        image_columns -> Array<Text>,
        status -> Text,
        error_message -> Nullable<Text>,
        requested_by -> Uuid,
        created_at -> Timestamptz,
        started_at -> Nullable<Timestamptz>,
        completed_at -> Nullable<Timestamptz>,
        progress -> Nullable<Jsonb>,
        metrics -> Nullable<Jsonb>,
        result -> Nullable<Jsonb>,
        artifact_key -> Nullable<Uuid>,
        artifact_sha256 -> Nullable<Bytea>,
        artifact_size -> Nullable<BigInt>,
    }
}

diesel::table! {
    labdata.training_attempt (model_version_id) {
        model_version_id -> Uuid,
        organization_id -> Uuid,
        token_hash -> Bytea,
        artifact_key -> Uuid,
        result -> Nullable<Jsonb>,
        error -> Nullable<Jsonb>,
    }
}

diesel::table! {
    labdata.agent_write_session (organization_id, api_key_id) {
        organization_id -> Uuid,
        api_key_id -> Uuid,
        execution_id -> Uuid,
        last_used_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.session (token_hash) {
        token_hash -> Bytea,
        organization_id -> Uuid,
        api_key_id -> Uuid,
        created_at -> Timestamptz,
        last_used_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.sign_in_link (token_hash) {
        token_hash -> Bytea,
        organization_id -> Uuid,
        user_id -> Uuid,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.execution_revert (organization_id, execution_id) {
        organization_id -> Uuid,
        execution_id -> Uuid,
        reverted_at -> Timestamptz,
        reverted_by -> Uuid,
        api_key_id -> Nullable<Uuid>,
        undo_execution_id -> Nullable<Uuid>,
        is_undone -> Bool,
    }
}

diesel::table! {
    labdata.training_backend (worker_id) {
        worker_id -> Uuid,
        checked_at -> Timestamptz,
        missing -> Nullable<Text>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(agent_chat, agent_chat_file);
diesel::allow_tables_to_appear_in_same_query!(api_key, app_user, session);
diesel::joinable!(ml_model_version -> ml_model (model_id));
diesel::allow_tables_to_appear_in_same_query!(ml_model, ml_model_version);
diesel::joinable!(job_execution -> job (job_id));
diesel::joinable!(job_trigger -> job (job_id));
diesel::joinable!(job_version -> job (job_id));
diesel::allow_tables_to_appear_in_same_query!(job_execution, job, job_trigger, job_version);

diesel::table! {
    labdata.sql_login (id) {
        id -> Uuid,
        organization_id -> Uuid,
        user_id -> Uuid,
        name -> Text,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        ended_at -> Nullable<Timestamptz>,
        end_reason -> Nullable<Text>,
        granted_for -> Nullable<Text>,
    }
}

diesel::table! {
    labdata.webhook (id) {
        id -> Uuid,
        organization_id -> Uuid,
        url -> Text,
        events -> Array<Text>,
        format -> Text,
        table_name -> Nullable<Text>,
        instrument_id -> Nullable<Uuid>,
        job_id -> Nullable<Uuid>,
        secret_version -> BigInt,
        previous_secret_until -> Nullable<Timestamptz>,
        failing_since -> Nullable<Timestamptz>,
        disabled_by -> Nullable<Text>,
        notice_due_at -> Nullable<Timestamptz>,
        created_by -> Uuid,
        created_at -> Timestamptz,
        oldest_secret_version -> BigInt,
    }
}

diesel::table! {
    labdata.webhook_delivery (webhook_id, id) {
        webhook_id -> Uuid,
        id -> Uuid,
        organization_id -> Uuid,
        event_type -> Text,
        subject -> Jsonb,
        at -> Timestamptz,
        started_at -> Timestamptz,
        earlier_attempts -> BigInt,
        attempts -> BigInt,
        status -> Text,
        due_at -> Timestamptz,
        settled_at -> Nullable<Timestamptz>,
        response_status -> Nullable<BigInt>,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    labdata.oidc_account (organization_id, user_id) {
        organization_id -> Uuid,
        user_id -> Uuid,
        issuer -> Text,
        subject -> Text,
    }
}

diesel::table! {
    labdata.oidc_session (token_hash) {
        token_hash -> Bytea,
        subject -> Text,
        refresh_token -> Bytea,
        check_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.oidc_used_attempt (attempt_hash) {
        attempt_hash -> Bytea,
        ends_at -> Timestamptz,
    }
}

diesel::table! {
    labdata.periodic_task (name) {
        name -> Text,
        due_at -> Timestamptz,
        succeeded_at -> Nullable<Timestamptz>,
        failed_at -> Nullable<Timestamptz>,
        error -> Nullable<Text>,
    }
}
