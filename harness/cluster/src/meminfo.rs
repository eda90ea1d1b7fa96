//! `/proc/meminfo`.

/// `MemAvailable` of `/proc/meminfo`, in bytes.
pub fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(evictlab_rules::quantity::KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_available_memory() {
        let meminfo = "MemTotal:       24000000 kB\nMemAvailable:   20480 kB\n";
        assert_eq!(available_memory(meminfo), Some(20 << 20));
        assert_eq!(available_memory("MemTotal: 1 kB\n"), None);
        assert_eq!(available_memory("MemAvailable: 18446744073709551615 kB\n"), None);
    }
}
