//! Files that a backfill considers, in memory.

use labdata_domain::{
    files::File,
    ids::{FileId, JobId, OrganizationId},
    refusal::Resource,
    triggers::{BackfillFiles, Occurrence, StoredUpload, event::EventKind},
};
use labdata_ports::{PortError, triggers::BackfillRequest};

use crate::memory::{State, owned};

impl State {
    /// The confirmed files of the request, oldest first.
    pub(super) fn uploads_to_backfill(
        &self,
        organization: OrganizationId,
        request: &BackfillRequest,
    ) -> Result<Vec<StoredUpload>, PortError> {
        let mut files: Vec<&File> = owned(&self.files, organization)
            .filter(|file| is_considered(&request.files, file))
            .collect();
        if matches!(&request.files, BackfillFiles::Named(ids) if ids.len() != files.len()) {
            return Err(PortError::NotFound(Resource::File));
        }
        files.sort_by_key(|file| (file.state.uploaded_at(), file.id));
        let stored = files.into_iter().filter_map(|file| {
            let upload = Occurrence::upload(file, |id| self.has_reader(id))?;
            Some(StoredUpload {
                id: file.id,
                chain: self.chain(organization, upload.source()),
                upload,
                last_run: self.last_run(organization, request.job, file.id),
                is_pending: self
                    .events
                    .iter()
                    .any(|event| event.kind == EventKind::FileUploaded(file.id)),
            })
        });
        Ok(stored.collect())
    }

    fn last_run(&self, organization: OrganizationId, job: JobId, file: FileId) -> Option<String> {
        owned(&self.executions, organization)
            .filter(|execution| execution.job_id == job)
            .filter(|execution| {
                let run = execution.origin.run();
                run.is_some_and(|run| run.trigger_file == Some(file))
            })
            .max_by_key(|execution| (execution.created_at, execution.id))
            .map(|execution| execution.state.as_str().to_owned())
    }
}

fn is_considered(files: &BackfillFiles, file: &File) -> bool {
    let Some(uploaded_at) = file.state.uploaded_at() else {
        return false;
    };
    match files {
        BackfillFiles::Named(ids) => ids.contains(&file.id),
        BackfillFiles::Triggered {
            instrument,
            uploaded_from,
            uploaded_to,
        } => {
            instrument.is_none_or(|wanted| file.attribution.instrument() == Some(wanted))
                && uploaded_from.is_none_or(|from| from <= uploaded_at)
                && uploaded_to.is_none_or(|to| uploaded_at < to)
        }
    }
}
