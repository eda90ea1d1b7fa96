//! The entrypoints of known images.

use evictlab_api_types::ImageReference;

use crate::machine::types::ContainerSpec;

/// Returns the command line of a container; `None` if its image determines it and is not known.
pub(super) fn command_line(spec: &ContainerSpec) -> Option<Vec<String>> {
    if !spec.command.is_empty() {
        return Some(spec.command.iter().chain(&spec.args).cloned().collect());
    }
    let image = ImageReference::parse(&spec.image);
    let last_part = image.name.rsplit('/').next().unwrap_or_default();
    let (entrypoint, default): (&[&str], &[&str]) = match last_part {
        "stress" if image.name.ends_with("evictlab/stress") => (&["/stress"], &["idle"]),
        "agnhost" => (&["/agnhost"], &["pause"]),
        "pause" => (&["/pause"], &[]),
        "busybox" | "alpine" => (&[], &["sh"]),
        _ => return None,
    };
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let arguments = if spec.args.is_empty() { owned(default) } else { spec.args.clone() };
    Some([owned(entrypoint), arguments].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(image: &str, command: &[&str], args: &[&str]) -> Option<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let spec = ContainerSpec {
            image: image.to_owned(),
            command: words(command),
            args: words(args),
            ..ContainerSpec::default()
        };
        command_line(&spec).map(|line| line.join(" "))
    }

    #[test]
    fn command_and_args_replace_the_entrypoint_and_its_arguments() {
        assert_eq!(line("registry.example:5000/e2e/agnhost:2.52", &[], &[]).unwrap(), "/agnhost pause");
        assert_eq!(line("agnhost@sha256:00", &[], &["stress"]).unwrap(), "/agnhost stress");
        assert_eq!(line("agnhost", &["sleep"], &["1"]).unwrap(), "sleep 1");
        assert_eq!(line("localhost/evictlab/stress:1", &[], &[]).unwrap(), "/stress idle");
        assert_eq!(line("localhost:5000/evictlab/stress:1", &[], &[]).unwrap(), "/stress idle");
        assert_eq!(line("vish/stress", &[], &[]), None);
        assert_eq!(line("nginx", &[], &["-v"]), None);
        assert_eq!(line("nginx", &["sleep", "1"], &[]).unwrap(), "sleep 1");
    }
}
