//! Eviction thresholds of simulated kubelets.

use std::collections::BTreeMap;
use std::str::FromStr;

use evictlab_cluster::Kubelet;
use evictlab_rules::threshold::{ThresholdConfig, parse_grace_period, parse_threshold_config_of};
use serde_json::{Map, Value, json};

use crate::args::backend::stated;
use crate::failure::Failure;

/// Thresholds in the format of the kubelet's flags.
#[derive(clap::Args)]
#[command(next_help_heading = "Thresholds of embedded clusters")]
pub(crate) struct ThresholdArgs {
    /// Hard thresholds, such as `memory.available<2Gi,nodefs.available<10%`, or `default` for those
    /// of a kubelet without configuration [default: none, as on kind]
    #[arg(long, value_name = "SIGNAL<AMOUNT,…>")]
    eviction_hard: Option<HardThresholds>,
    /// Soft thresholds, such as `memory.available<3Gi`
    #[arg(long, value_name = "SIGNAL<AMOUNT,…>", requires = "eviction_soft_grace_period")]
    eviction_soft: Option<Pairs<'<'>>,
    /// Grace periods of the soft thresholds, such as `memory.available=30s`
    #[arg(long, value_name = "SIGNAL=TIME,…", requires = "eviction_soft")]
    eviction_soft_grace_period: Option<Pairs<'='>>,
    /// Time that a pressure condition remains after the pressure has ended [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = period)]
    eviction_pressure_transition_period: Option<String>,
}

/// `SIGNAL` and value, separated by a character, in a list separated by commas.
#[derive(Clone, Debug, Default)]
struct Pairs<const SEPARATOR: char>(BTreeMap<String, String>);

impl<const SEPARATOR: char> FromStr for Pairs<SEPARATOR> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |part: &str| {
            let (signal, value) = part
                .split_once(SEPARATOR)
                .ok_or_else(|| format!("`{part}` is not SIGNAL{SEPARATOR}VALUE"))?;
            Ok((signal.trim().to_owned(), value.trim().to_owned()))
        };
        text.split(',').map(pair).collect::<Result<_, String>>().map(Self)
    }
}

#[derive(Clone, Debug)]
enum HardThresholds {
    /// Those of a kubelet without `evictionHard`.
    Default,
    Map(Pairs<'<'>),
}

impl FromStr for HardThresholds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "default" { Ok(Self::Default) } else { text.parse().map(Self::Map) }
    }
}

fn period(text: &str) -> Result<String, String> {
    parse_grace_period(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Checks that these kubelets start with the thresholds of an option, which are written as in
/// `example`.
fn check(
    option: &'static str,
    example: &str,
    thresholds: &ThresholdConfig,
    kubelets: &[Kubelet],
) -> Result<(), Failure> {
    kubelets.iter().map(|kubelet| &kubelet.version).try_for_each(|version| {
        parse_threshold_config_of(version, thresholds).map(drop).map_err(|error| {
            Failure::bad_input(format!(
                "failed to use these thresholds: kubelet {version} does not start with them: {error}\nhelp: write them as this kubelet does: {example}"
            ))
            .of_option(option)
        })
    })
}

impl ThresholdArgs {
    /// Returns the names of the stated options.
    pub(crate) fn stated_options(&self) -> Vec<&'static str> {
        stated([
            ("--eviction-hard", self.eviction_hard.is_some()),
            ("--eviction-soft", self.eviction_soft.is_some()),
            ("--eviction-pressure-transition-period", self.eviction_pressure_transition_period.is_some()),
        ])
    }

    /// Returns the changes to the configuration of these kubelets.
    ///
    /// # Errors
    /// Thresholds with which one of the kubelets does not start.
    pub(crate) fn kubelet_config(&self, kubelets: &[Kubelet]) -> Result<Map<String, Value>, Failure> {
        let mut config = Map::new();
        match &self.eviction_hard {
            None => {}
            Some(HardThresholds::Default) => drop(config.insert("evictionHard".to_owned(), Value::Null)),
            Some(HardThresholds::Map(pairs)) => {
                drop(config.insert("evictionHard".to_owned(), json!(pairs.0)))
            }
        }
        let soft = self.eviction_soft.clone().unwrap_or_default().0;
        let grace = self.eviction_soft_grace_period.clone().unwrap_or_default().0;
        if !soft.is_empty() {
            config.insert("evictionSoft".to_owned(), json!(soft));
            config.insert("evictionSoftGracePeriod".to_owned(), json!(grace));
        }
        if let Some(period) = &self.eviction_pressure_transition_period {
            config.insert("evictionPressureTransitionPeriod".to_owned(), json!(period));
        }
        let hard = match &self.eviction_hard {
            Some(HardThresholds::Map(pairs)) => pairs.0.clone(),
            _ => BTreeMap::new(),
        };
        let hard = ThresholdConfig { eviction_hard: hard, ..ThresholdConfig::default() };
        check("eviction-hard", "--eviction-hard 'memory.available<2Gi'", &hard, kubelets)?;
        let soft = ThresholdConfig {
            eviction_soft: soft,
            eviction_soft_grace_period: grace,
            ..ThresholdConfig::default()
        };
        let example =
            "--eviction-soft 'memory.available<3Gi' --eviction-soft-grace-period memory.available=30s";
        check("eviction-soft", example, &soft, kubelets)?;
        Ok(config)
    }
}
