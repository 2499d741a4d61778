//! Samples of many sockets over any time, thinned so that they always fit into memory.

use std::collections::HashMap;

use crate::sample::Sample;

/// Sockets that are remembered at most; those that came first stay.
pub const SOCKETS_MAX: usize = 512;
/// Samples of a socket that are remembered at most.
pub const POINTS_MAX: usize = 1024;

/// What one socket did.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    /// Its samples, some left out once there are too many.
    pub points: Vec<Sample>,
    /// Its newest sample.
    pub latest: Sample,
    /// Samples taken.
    pub taken: u64,
    /// Times that the congestion window became smaller.
    pub reductions: u64,
    /// Least time between two samples that are remembered.
    gap_s: f64,
}

impl Course {
    fn new(first: Sample) -> Self {
        let latest = first.clone();
        Self { points: vec![first], latest, taken: 1, reductions: 0, gap_s: 0.0 }
    }

    fn take(&mut self, sample: Sample) {
        self.taken += 1;
        self.reductions += u64::from(sample.cwnd < self.latest.cwnd);
        let since = self.points.last().map_or(f64::MAX, |last| sample.at_s - last.at_s);
        if since >= self.gap_s {
            if self.points.len() >= POINTS_MAX {
                let mut keep = false;
                self.points.retain(|_| {
                    keep = !keep;
                    keep
                });
                let span = sample.at_s - self.points[0].at_s;
                self.gap_s = span / (POINTS_MAX / 2) as f64;
            }
            self.points.push(sample.clone());
        }
        self.latest = sample;
    }
}

/// What all sockets of a trace did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Courses {
    courses: Vec<Course>,
    by_socket: HashMap<u64, usize>,
    /// Samples of sockets beyond the bound.
    pub beyond: u64,
}

impl Courses {
    /// Takes a sample.
    pub fn take(&mut self, sample: Sample) {
        if let Some(index) = self.by_socket.get(&sample.socket) {
            self.courses[*index].take(sample);
        } else if self.courses.len() < SOCKETS_MAX {
            self.by_socket.insert(sample.socket, self.courses.len());
            self.courses.push(Course::new(sample));
        } else {
            self.beyond += 1;
        }
    }

    /// Forgets sockets that have told nothing for some seconds, as a live view does.
    pub fn forget(&mut self, now_s: f64, after_s: f64) {
        self.courses.retain(|course| now_s - course.latest.at_s < after_s);
        let index = |(index, course): (usize, &Course)| (course.latest.socket, index);
        self.by_socket = self.courses.iter().enumerate().map(index).collect();
    }

    /// The sockets, those of one MPTCP connection beside each other, in the order of their first
    /// samples.
    pub fn by_connection(&self) -> Vec<Vec<&Course>> {
        let mut groups: Vec<Vec<&Course>> = Vec::new();
        let mut by_token: HashMap<u32, usize> = HashMap::new();
        for course in &self.courses {
            let group = course.latest.token.and_then(|token| by_token.get(&token).copied());
            match group {
                Some(group) => groups[group].push(course),
                None => {
                    by_token.extend(course.latest.token.map(|token| (token, groups.len())));
                    groups.push(vec![course]);
                }
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::sample;

    #[test]
    fn subflows_of_a_connection_stand_together() {
        let mut courses = Courses::default();
        for (socket, token) in [(1, Some(7)), (2, None), (3, Some(7)), (1, Some(7))] {
            courses.take(sample(1.0, socket, token));
        }
        let groups = courses.by_connection();
        let sockets: Vec<Vec<_>> =
            groups.iter().map(|group| group.iter().map(|c| c.latest.socket).collect()).collect();
        assert_eq!(sockets, [vec![1, 3], vec![2]]);
        assert_eq!(groups[0][0].taken, 2);
        courses.take(sample(9.0, 2, None));
        courses.forget(10.0, 5.0);
        assert_eq!(courses.by_connection().len(), 1);
        courses.take(sample(9.5, 2, None));
        assert_eq!(courses.by_connection()[0][0].taken, 3);
    }

    #[test]
    fn a_long_trace_takes_bounded_room_and_spans_its_time() {
        let mut courses = Courses::default();
        for n in 0..200_000 {
            courses.take(sample(f64::from(n) / 100.0, 1, None));
        }
        let groups = courses.by_connection();
        let points = &groups[0][0].points;
        assert!((POINTS_MAX / 4..=POINTS_MAX).contains(&points.len()), "{}", points.len());
        assert_eq!(points[0].at_s, 0.0);
        assert!(points.last().is_some_and(|last| last.at_s > 1990.0));
        let gap = |pair: &[Sample]| pair[1].at_s - pair[0].at_s;
        assert!(points.windows(2).all(|pair| gap(pair) < 10.0));
    }

    #[test]
    fn sockets_beyond_the_bound_are_counted() {
        let mut courses = Courses::default();
        for socket in 0..SOCKETS_MAX as u64 + 2 {
            courses.take(sample(0.0, socket, None));
        }
        assert_eq!((courses.by_connection().len(), courses.beyond), (SOCKETS_MAX, 2));
    }
}
