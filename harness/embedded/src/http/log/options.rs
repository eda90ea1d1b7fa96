//! Options of a log request.

use jiff::Timestamp;

use crate::apiserver::Status;
use crate::http::request::Query;
use crate::kubelet::pods::PodLogOptions;

/// Options of a log request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogRequest {
    /// Name of the container; empty for the only one.
    pub(crate) container: String,
    /// Streams new output.
    pub(crate) follow: bool,
    /// Selection and format of the lines.
    pub(crate) options: PodLogOptions,
}

impl LogRequest {
    /// Reads the options. A number that is out of range is ignored: kubectl does not send one.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Status> {
        let size = |field| Ok::<_, Status>(query.number(field)?.and_then(|size| usize::try_from(size).ok()));
        let since_time = query.get("sinceTime").map(str::parse::<Timestamp>).transpose();
        let options = PodLogOptions {
            previous: query.is_true("previous"),
            timestamps: query.is_true("timestamps"),
            tail_lines: size("tailLines")?,
            limit_bytes: size("limitBytes")?,
            since_seconds: query.number("sinceSeconds")?.map(i64::unsigned_abs),
            since_time: since_time.map_err(|error| Status::bad_request(error.to_string()))?,
        };
        let container = query.text("container").to_owned();
        Ok(Self { container, follow: query.is_true("follow"), options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_options() {
        let read = |query: &str| LogRequest::from_query(&Query::parse(query));
        let followed = read("follow=true&timestamps=true&limitBytes=9&container=c").unwrap();
        let options = PodLogOptions { timestamps: true, limit_bytes: Some(9), ..PodLogOptions::default() };
        assert_eq!(followed, LogRequest { container: "c".into(), follow: true, options });
        assert_eq!(read("tailLines=x").unwrap_err().code, 400);
        assert_eq!(read("sinceTime=x").unwrap_err().code, 400);
    }
}
