//! agnhost's subcommands, but `stress` and `logs-generator`.

use std::time::Duration;

use super::super::kernel::Kernel;
use super::super::process::{Pid, SIGTERM, Sig};
use super::idle::Idle;
use super::logs::Logs;
use super::stress::{Stress, Whose};
use super::{Program, Turn};
use crate::time::Time;

/// Those that only serve, or wait: they do nothing here by themselves.
const SERVERS: [&str; 30] = [
    "audit-proxy",
    "connect",
    "crd-conversion-webhook",
    "dns-server-list",
    "dns-suffix",
    "etc-hosts",
    "fake-gitserver",
    "fakeregistryserver",
    "grpc-health-checking",
    "guestbook",
    "inclusterclient",
    "liveness",
    "logs-generator",
    "mounttest",
    "mtlsclient",
    "mtlsserver",
    "net",
    "nettest",
    "no-snat-test",
    "no-snat-test-proxy",
    "openidmetadata",
    "porter",
    "port-forward-tester",
    "resource-consumer",
    "resource-consumer-controller",
    "serve-hostname",
    "tcp-reset",
    "test-webserver",
    "watch-termination",
    "webhook",
];

/// One that waits for a signal.
pub(in super::super) struct Agnhost {
    kind: Kind,
    begun: bool,
    /// When a server that was told to end does so.
    until: Option<Time>,
}

enum Kind {
    /// `pause`
    Pause,
    /// `netexec`
    Netexec { port: String, delay: Duration },
    /// Another server.
    Server { name: String },
}

impl Agnhost {
    /// The program of a subcommand.
    pub fn of(arguments: &[String]) -> Program {
        let (name, rest) = match arguments.split_first() {
            Some((name, rest)) => (name.as_str(), rest),
            // Without a subcommand it tells how it is used.
            None => {
                let text = "Usage:\n  app [command]\n".to_owned();
                return Program::Say { name: "agnhost", text, stderr: false, code: 0 };
            }
        };
        let kind = match name {
            "stress" => return Stress::of(Whose::Agnhost, rest),
            "logs-generator" => {
                return Logs::of(rest).map_or_else(
                    |text| Program::Say { name: "agnhost", text, stderr: true, code: 255 },
                    Program::Logs,
                );
            }
            "entrypoint-tester" => {
                let text = format!("[/agnhost {}]\n", arguments.join(" "));
                return Program::Say { name: "agnhost", text, stderr: false, code: 0 };
            }
            "help" | "--help" | "-h" => {
                let text = "Usage:\n  app [command]\n".to_owned();
                return Program::Say { name: "agnhost", text, stderr: false, code: 0 };
            }
            "pause" => Kind::Pause,
            "netexec" => {
                let value = |flag: &str| {
                    rest.iter().enumerate().find_map(|(at, word)| {
                        let word = word.strip_prefix(flag)?;
                        if word.is_empty() {
                            rest.get(at + 1).cloned()
                        } else {
                            word.strip_prefix('=').map(str::to_owned)
                        }
                    })
                };
                let delay = value("--delay-shutdown").and_then(|text| text.parse().ok()).unwrap_or_default();
                let port = value("--http-port").unwrap_or_else(|| "8080".to_owned());
                Kind::Netexec { port, delay: Duration::from_secs(delay) }
            }
            name if SERVERS.contains(&name) => Kind::Server { name: name.to_owned() },
            name => {
                let text =
                    format!("Error: unknown command \"{name}\" for \"app\"\nRun 'app --help' for usage.\n");
                return Program::Say { name: "agnhost", text, stderr: true, code: 1 };
            }
        };
        Program::Agnhost(Self { kind, begun: false, until: None })
    }

    /// Whether it handles a signal itself.
    pub fn handles(&self, sig: Sig) -> bool {
        match self.kind {
            Kind::Pause => matches!(sig, 2 | SIGTERM),
            Kind::Netexec { .. } => sig == SIGTERM,
            Kind::Server { .. } => false,
        }
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        if !std::mem::replace(&mut self.begun, true) {
            match &self.kind {
                Kind::Pause => kernel.say(me, 1, "Paused\nSignals registered\n"),
                Kind::Netexec { port, .. } => {
                    kernel.klog(me, "log.go:195", &format!("Started HTTP server on port {port}"))
                }
                Kind::Server { name } => {
                    let mut idle = Idle::unknown(format!("what \"agnhost {name}\" does"));
                    return idle.step(me, kernel);
                }
            }
        }
        let signals = kernel.processes.get_mut(&me).map(|process| std::mem::take(&mut process.signals));
        let signal = signals.unwrap_or_default().first().copied();
        match (&self.kind, signal, self.until) {
            (Kind::Pause, Some(sig), _) => {
                let (text, code) = if sig == SIGTERM { ("terminated", 2) } else { ("interrupt", 1) };
                kernel.say(me, 1, &format!("exiting because of signal {text:?}\n"));
                Turn::Exit(code)
            }
            (Kind::Netexec { delay, .. }, Some(_), None) => {
                let until = kernel.now + *delay;
                self.until = Some(until);
                if delay.is_zero() { Turn::Exit(0) } else { Turn::At(until) }
            }
            (_, _, Some(until)) => {
                if kernel.now >= until {
                    Turn::Exit(0)
                } else {
                    Turn::At(until)
                }
            }
            _ => Turn::Wait,
        }
    }
}
