//! What holds for every eviction.
