//! The options of a TCP sender's congestion controller.

use plait_proto::congestion::{Adv, Algorithm, ControllerConfig, Repair, SlowStart};
use plait_toml::form::Form;
use plait_toml::{Section, tuning};

/// A sender with BBR. It is modelled by the paths' own controller, which is derived from it.
const BBR: &str = "bbr";

/// The options beside the controller's name; each belongs to some controllers only.
pub const OPTIONS: [&str; 4] = ["slow_start", "repairs", "adv", "delay_ms"];

fn name_of(algorithm: Algorithm) -> &'static str {
    if algorithm == Algorithm::Gauge { BBR } else { algorithm.name() }
}

/// Reads the controller's name and what it is told: the name, and the whole.
pub(super) fn read(section: &mut Section<'_>) -> (String, ControllerConfig) {
    let known = Algorithm::ALL.map(|algorithm| (name_of(algorithm), algorithm));
    let is_given = section.holds_any(&["controller"]);
    let chosen = section.choice("controller", &known);
    let algorithm = chosen.unwrap_or(Algorithm::CubicLinux);
    let mut config = ControllerConfig::from(algorithm);
    if is_given && chosen.is_none() {
        // Nothing can be said about the options of a controller that is misspelt.
        section.know(&OPTIONS);
        return (name_of(algorithm).to_owned(), config);
    }
    let setting = format!("controller = \"{}\"", name_of(algorithm));
    if algorithm.default_slow_start().is_some() {
        let forms = SlowStart::ALL.map(|form| (form.name(), form));
        config.slow_start = section.choice("slow_start", &forms);
    } else {
        section.no_effect(&["slow_start"], &setting, "any controller but \"bbr\" and \"fixed\"");
    }
    match algorithm {
        Algorithm::WhiteHaul => {
            config.whitehaul.repairs = read_repairs(section);
            config.whitehaul.adv = read_adv(section).unwrap_or(config.whitehaul.adv);
        }
        Algorithm::Edinburgh => {
            config.edinburgh.adv = read_adv(section).unwrap_or(config.edinburgh.adv);
        }
        _ => section.no_effect(&["adv"], &setting, "controller = \"whitehaul\" or \"edinburgh\""),
    }
    if algorithm != Algorithm::WhiteHaul {
        section.no_effect(&["repairs"], &setting, "controller = \"whitehaul\"");
    }
    read_delay(section, &setting, &mut config);
    (name_of(algorithm).to_owned(), config)
}

fn read_repairs<C: FromIterator<Repair>>(section: &mut Section<'_>) -> C {
    tuning::REPAIRS.read(section, "repairs").unwrap_or_default().into_iter().collect()
}

fn read_adv(section: &mut Section<'_>) -> Option<Adv> {
    section.know(&["adv"]);
    let is_given = section.holds_any(&["adv"]);
    let read = if is_given { tuning::ADV.read(section, "adv") } else { None };
    read.map(|segments| segments.map_or(Adv::Auto, Adv::Segments))
}

fn read_delay(section: &mut Section<'_>, setting: &str, config: &mut ControllerConfig) {
    let is_free = config.whitehaul.repairs.contains(Repair::Delay);
    let place = match config.algorithm {
        Algorithm::Edinburgh => &mut config.edinburgh.delay,
        Algorithm::WhiteHaul if is_free => &mut config.whitehaul.delay,
        algorithm => {
            let is_whitehaul = algorithm == Algorithm::WhiteHaul;
            let setting = if is_whitehaul { "repairs without \"delay\"" } else { setting };
            return section.no_effect(
                &["delay_ms"],
                setting,
                "controller = \"edinburgh\", or \"whitehaul\" with repairs = [\"delay\"]",
            );
        }
    };
    *place = section.millis("delay_ms", tuning::DELAY_MS_MAX.into()).unwrap_or(*place);
}

/// Which of the options were given for a sender, by what they changed.
pub fn told(config: &ControllerConfig) -> Vec<&'static str> {
    let plain = ControllerConfig::from(config.algorithm);
    let changes = [
        config.slow_start != plain.slow_start,
        config.whitehaul.repairs != plain.whitehaul.repairs,
        config.whitehaul.adv != plain.whitehaul.adv || config.edinburgh.adv != plain.edinburgh.adv,
        config.whitehaul.delay != plain.whitehaul.delay
            || config.edinburgh.delay != plain.edinburgh.delay,
    ];
    OPTIONS.into_iter().zip(changes).filter(|(_, is)| *is).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_that_was_given_is_told() {
        let mut config = ControllerConfig::from(Algorithm::WhiteHaul);
        assert!(told(&config).is_empty());
        config.slow_start = Some(SlowStart::Standard);
        config.whitehaul.repairs = [Repair::Latch].into_iter().collect();
        config.whitehaul.adv = Adv::Auto;
        config.whitehaul.delay *= 2;
        assert_eq!(told(&config), OPTIONS);
    }
}
