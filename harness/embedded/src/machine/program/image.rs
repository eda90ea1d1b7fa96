//! What an image runs by itself.

use super::super::ContainerSpec;

/// A container's command line; none if its image would decide, and is not known.
pub(super) fn command_line(spec: &ContainerSpec) -> Option<Vec<String>> {
    let line = if spec.command.is_empty() {
        let (entrypoint, command): (&[&str], &[&str]) = match name(&spec.image) {
            "stress" if is_own(&spec.image) => (&["/stress"], &["idle"]),
            "agnhost" => (&["/agnhost"], &["pause"]),
            "pause" => (&["/pause"], &[]),
            "busybox" | "alpine" => (&[], &["sh"]),
            // vish/stress
            "stress" => (&["/stress"], &["--logtostderr"]),
            _ => return None,
        };
        let entrypoint = entrypoint.iter().map(|part| (*part).to_owned());
        if spec.args.is_empty() {
            entrypoint.chain(command.iter().map(|part| (*part).to_owned())).collect()
        } else {
            entrypoint.chain(spec.args.iter().cloned()).collect()
        }
    } else {
        spec.command.iter().chain(&spec.args).cloned().collect::<Vec<_>>()
    };
    Some(line)
}

/// Whether an image is evictlab's own.
fn is_own(image: &str) -> bool {
    image.split(['@', ':']).next().is_some_and(|path| path.ends_with("evictlab/stress"))
}

/// An image's name, without its registry, tag and digest.
fn name(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
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
    fn an_image_runs_its_entrypoint_unless_told_otherwise() {
        assert_eq!(line("registry.example:5000/e2e/agnhost:2.52", &[], &[]).unwrap(), "/agnhost pause");
        assert_eq!(line("agnhost@sha256:00", &[], &["stress"]).unwrap(), "/agnhost stress");
        assert_eq!(line("agnhost", &["sleep"], &["1"]).unwrap(), "sleep 1");
        assert_eq!(line("localhost/evictlab/stress:1", &[], &[]).unwrap(), "/stress idle");
        assert_eq!(line("vish/stress", &[], &[]).unwrap(), "/stress --logtostderr");
        assert_eq!(line("nginx", &[], &["-v"]), None);
        assert_eq!(line("nginx", &["sleep", "1"], &[]).unwrap(), "sleep 1");
    }
}
