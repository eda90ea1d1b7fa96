//! What may be done to objects, and what is done with them then: defaults, validation, admission, graceful deletion, subresources. HTTP is not
//! known here; whoever changes an object for a user or as a controller comes by here, kubelets write their own statuses.

mod status;

pub use status::Status;
