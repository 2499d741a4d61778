//! A figure over the seeds of a cell.

use super::Results;

/// How the figures of several seeds become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Middle {
    Median,
    Mean,
}

impl Middle {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
        }
    }
}

/// A metric's values, sorted; never empty.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// The values of a cell; `None` when no run has the metric.
    pub(crate) fn of(results: &Results, cell: &str, metric: &str) -> Option<Self> {
        let runs = results.runs.iter().filter(|run| run.cell == cell);
        Self::new(runs.filter_map(|run| run.metrics.get(metric).copied()).collect())
    }

    /// The metrics of a cell by name.
    pub(crate) fn metrics<'a>(results: &'a Results, cell: &str) -> Vec<&'a str> {
        let first = results.runs.iter().find(|run| run.cell == cell);
        first.map_or_else(Vec::new, |run| run.metrics.keys().map(String::as_str).collect())
    }

    pub(crate) fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Self(values))
    }

    /// The median of these; `None` of nothing.
    pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
        Self::new(values.into_iter().collect()).map(|samples| samples.middle(Middle::Median))
    }

    pub(crate) fn middle(&self, middle: Middle) -> f64 {
        let Self(values) = self;
        match middle {
            Middle::Median => (values[values.len() / 2] + values[(values.len() - 1) / 2]) / 2.0,
            Middle::Mean => values.iter().sum::<f64>() / values.len() as f64,
        }
    }

    /// The value below which this share lies.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let Self(values) = self;
        let rank = (share * values.len() as f64).ceil() as usize;
        values[rank.clamp(1, values.len()) - 1]
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn low(&self) -> f64 {
        self.0[0]
    }

    pub(crate) fn high(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_samples() {
        assert_eq!(Samples::new(Vec::new()), None);
        let samples = Samples::new(vec![9.0, 1.0, 2.0, 4.0]).unwrap();
        assert_eq!((samples.low(), samples.high()), (1.0, 9.0));
        assert_eq!(samples.middle(Middle::Median), 3.0);
        assert_eq!(samples.middle(Middle::Mean), 4.0);
    }
}
