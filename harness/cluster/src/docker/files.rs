//! Files in containers.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bollard::query_parameters::{
    DownloadFromContainerOptionsBuilder, UploadToContainerOptions, UploadToContainerOptionsBuilder,
};
use futures::{Stream, StreamExt, stream};
use tokio_util::bytes::Bytes;

use super::client::{Docker, MAX_OUTPUT};
use super::error::DockerError;

/// Block size of a tar archive, in bytes.
const TAR_BLOCK: u64 = 512;
/// Size of the chunks that a file is streamed in, in bytes.
const CHUNK: usize = 1 << 18;

impl Docker {
    /// Reads a file of a container; `None` if the file or the container does not exist.
    pub async fn read_file(&self, container: &str, path: &str) -> Result<Option<Vec<u8>>, DockerError> {
        let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
        let mut stream = Box::pin(self.api().download_from_container(container, Some(options)));
        let mut archive = Vec::new();
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(chunk) if archive.len() + chunk.len() > MAX_OUTPUT => {
                    let error = format!("it has {} bytes or more", archive.len() + chunk.len());
                    return Err(file_error(container, path, io::Error::other(error)));
                }
                Ok(chunk) => archive.extend_from_slice(&chunk),
                Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => {
                    return Ok(None);
                }
                Err(source) => {
                    return Err(DockerError::request(format!("read {path} in {container}"), source));
                }
            }
        }
        let unpack = || -> io::Result<Vec<u8>> {
            let mut archive = tar::Archive::new(archive.as_slice());
            let mut bytes = Vec::new();
            for entry in archive.entries()? {
                entry?.read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        };
        unpack().map(Some).map_err(|source| file_error(container, path, source))
    }

    /// Writes a file into an existing directory of a container.
    pub async fn write_file(
        &self,
        container: &str,
        path: &str,
        mode: u32,
        bytes: &[u8],
    ) -> Result<(), DockerError> {
        let pack = || -> io::Result<Vec<u8>> {
            let mut archive = tar::Builder::new(Vec::with_capacity(bytes.len() + 2048));
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(mode);
            archive.append_data(&mut header, split(path).1, bytes)?;
            archive.into_inner()
        };
        let archive = pack().map_err(|source| file_error(container, path, source))?;
        self.api()
            .upload_to_container(container, Some(upload(path)), bollard::body_full(archive.into()))
            .await
            .map_err(|source| DockerError::request(format!("write {path} in {container}"), source))
    }

    /// Streams a local file into an existing directory of a container. Image archives can be
    /// larger than the free memory, so the file is never held as a whole.
    pub async fn send_file(
        &self,
        container: &str,
        path: &str,
        mode: u32,
        from: &Arc<File>,
    ) -> Result<(), DockerError> {
        let failed = |source| file_error(container, path, source);
        let size = from.metadata().map_err(failed)?.len();
        let mut header = tar::Header::new_gnu();
        header.set_path(split(path).1).map_err(failed)?;
        header.set_size(size);
        header.set_mode(mode);
        header.set_cksum();
        // `tar::Builder` cannot produce a stream. An archive of one file is a header, the file
        // padded to whole blocks, and two empty blocks.
        let padding = size.next_multiple_of(TAR_BLOCK) - size + 2 * TAR_BLOCK;
        let head = stream::iter([Ok(Bytes::copy_from_slice(header.as_bytes()))]);
        let tail = stream::iter([Ok(Bytes::from(vec![0; padding as usize]))]);
        let archive = head.chain(chunks(from, size)).chain(tail);
        self.api()
            .upload_to_container(container, Some(upload(path)), bollard::body_try_stream(archive))
            .await
            .map_err(|source| DockerError::request(format!("write {path} in {container}"), source))
    }
}

/// Reads a file from its start, independent of other readers of the same handle.
fn chunks(file: &Arc<File>, size: u64) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let file = file.clone();
    stream::try_unfold(0, move |offset| {
        let file = file.clone();
        async move {
            let length = CHUNK.min(usize::try_from(size - offset).unwrap_or(CHUNK));
            if length == 0 {
                return Ok(None);
            }
            let read = move || {
                let mut chunk = vec![0; length];
                file.read_exact_at(&mut chunk, offset).map(|()| Bytes::from(chunk))
            };
            let chunk = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
            Ok(Some((chunk, offset + length as u64)))
        }
    })
}

/// Directory and file name of an absolute path.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        None | Some(("", _)) => ("/", path.trim_start_matches('/')),
        Some(parts) => parts,
    }
}

fn upload(path: &str) -> UploadToContainerOptions {
    UploadToContainerOptionsBuilder::default().path(split(path).0).build()
}

fn file_error(container: &str, path: &str, source: io::Error) -> DockerError {
    DockerError::File { path: path.to_owned(), container: container.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_paths_into_directory_and_name() {
        assert_eq!(split("/var/lib/a.tar"), ("/var/lib", "a.tar"));
        assert_eq!(split("/a.tar"), ("/", "a.tar"));
        assert_eq!(split("a.tar"), ("/", "a.tar"));
    }
}
