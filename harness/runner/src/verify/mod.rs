//! Whether a change of the kubelet mends what a case is about: the case on the kubelet before and on the one after, side by side, and one document
//! that shows it.

mod about;
mod conclusion;
mod difference;
mod document;
mod setting;
mod verification;

pub use about::about;
pub use conclusion::Conclusion;
pub use setting::{Setting, Side, facts};
pub use verification::{Concluded, Verification};
