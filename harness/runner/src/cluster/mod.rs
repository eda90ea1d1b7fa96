//! Clusters: kind creates and deletes them, the Docker API does the rest.

mod docker;

pub use docker::{Container, Docker, DockerError, Output};
