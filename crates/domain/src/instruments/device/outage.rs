//! The notice of an outage.

use serde_json::{Map, Value};

use super::WatchedDevice;
use crate::{
    notifications::{Draft, MAX_TITLE, shortened},
    timestamp::render,
};

/// Makes the notice that a device is silent. Its deduplication key is the same for the whole of an outage.
#[must_use]
pub fn outage_notice(device: &WatchedDevice) -> Draft {
    let ending = "\" does not report";
    // One more for the quotation mark before the name.
    let room = MAX_TITLE.saturating_sub(ending.chars().count() + 1);
    let waiting = match device.queued_files {
        None | Some(0) => String::new(),
        Some(1) => " 1 file waited there.".to_owned(),
        Some(count) => format!(" {count} files waited there."),
    };
    let data = [
        (
            "instrument_id",
            Value::String(device.instrument.to_string()),
        ),
        ("instrument_name", Value::String(device.name.clone())),
        ("last_seen", Value::String(render(device.last_seen))),
    ];
    Draft {
        title: format!("\"{}{ending}", shortened(&device.name, room)),
        dedupe_key: format!(
            // Beats stay as they are until the device reports again: all servers and passes make one key.
            "platform/instrument-outage/{}/{}",
            device.instrument, device.beats
        ),
        body: format!(
            "The last sign of life came at {}.{waiting} See that the instrument's computer is on and \
             connected, and that labdata-watch runs there. Files that it could not send are sent when it is \
             back.",
            render(device.last_seen)
        ),
        action_url: format!("/instruments/{}", device.instrument),
        data: Some(Map::from_iter(
            data.map(|(name, value)| (name.to_owned(), value)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::{InstrumentId, OrganizationId},
        instruments::DeviceStatus,
    };

    #[test]
    fn a_notice_can_always_be_sent_and_names_the_outage() {
        let device = |name: &str, beats, queued_files| WatchedDevice {
            organization: OrganizationId::new(Uuid::from_u128(1)),
            instrument: InstrumentId::new(Uuid::from_u128(2)),
            name: name.to_owned(),
            beats,
            last_seen: datetime!(2026-03-01 12:00 UTC),
            queued_files,
            announced: DeviceStatus::Offline,
            is_outage_noticed: false,
        };
        let notice = outage_notice(&device("Reader 1", 7, Some(3)));
        assert_eq!(notice.title, "\"Reader 1\" does not report");
        assert!(notice.body.contains("2026-03-01T12:00:00Z. 3 files waited"));
        assert_eq!(notice, outage_notice(&device("Reader 1", 7, Some(3))));
        let next = outage_notice(&device("Reader 1", 8, None));
        assert_ne!(notice.dedupe_key, next.dedupe_key);
        let long = outage_notice(&device(&"ü".repeat(200), 7, Some(1)));
        for notice in [notice, next, long] {
            assert_eq!(notice.check(), Ok(()), "{}", notice.title);
        }
    }
}
