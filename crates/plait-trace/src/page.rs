//! A trace or a split capture as one self-contained HTML page: style and plots are inside, and
//! nothing is loaded.

use crate::course::{Course, Courses};
use crate::plot::{COLOURS, Line, Plot, escape};
use crate::sample::Sample;
use crate::split::report::{ConnectionReport, Report, SubflowReport, WayReport};

const STYLE: &str = include_str!("page.css");
/// Connections whose plots a page shows at most; more would make a browser slow.
const PLOTTED_MAX: usize = 60;

/// The page of a trace. `words` are sentences about it, such as what it cost.
pub fn trace(words: &[String], courses: &Courses) -> String {
    let groups = courses.by_connection();
    let mut body = sentences(words);
    for (number, group) in groups.iter().enumerate().take(PLOTTED_MAX) {
        body.push_str(&traced(number + 1, group));
    }
    body.push_str(&left_out(groups.len()));
    document("plait trace", &body)
}

/// The page of a split capture.
pub fn split(words: &[String], report: &Report) -> String {
    let mut body = sentences(words);
    for (number, connection) in report.connections.iter().enumerate().take(PLOTTED_MAX) {
        let bin_s = report.capture.bin_seconds;
        body.push_str(&connection_section(number + 1, connection, bin_s));
    }
    body.push_str(&left_out(report.connections.len()));
    document("plait trace split", &body)
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {body}</body>\n</html>\n"
    )
}

fn sentences(words: &[String]) -> String {
    words.iter().map(|sentence| format!("<p>{}</p>\n", escape(sentence))).collect()
}

fn left_out(connections: usize) -> String {
    match connections.checked_sub(PLOTTED_MAX) {
        Some(more @ 1..) => format!("<p>{more} more connections are not drawn.</p>\n"),
        _ => String::new(),
    }
}

/// A quantity of samples that is drawn: title, unit, value.
type Drawn = (&'static str, &'static str, fn(&Sample) -> f64);

const DRAWN: [Drawn; 5] = [
    ("Congestion window; dashed: slow-start threshold", "segments", |one| one.cwnd.into()),
    ("Send window", "kB", |one| f64::from(one.send_window_bytes) / 1e3),
    ("Smoothed round-trip time", "ms", |one| f64::from(one.srtt_us) / 1e3),
    ("Delivery rate", "Mbit/s", |one| one.rate_bps as f64 / 1e6),
    ("Segments retransmitted", "segments", |one| one.retransmits.into()),
];

fn traced(number: usize, group: &[&Course]) -> String {
    let title = match group[0].latest.token {
        Some(token) => format!("Connection {number}: MPTCP, token {token:08x}"),
        None => format!("Connection {number}: TCP"),
    };
    let row = |(index, course): (usize, &&Course)| {
        let one = &course.latest;
        let ends = escape(&format!("{} to {}", one.local, one.remote));
        format!(
            "<tr><td>{} {ends}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{:.2}</td>\
             <td>{}</td><td>{}</td></tr>\n",
            key(index),
            one.cwnd,
            one.ssthresh.map_or_else(|| "-".into(), |segments| segments.to_string()),
            f64::from(one.srtt_us) / 1e3,
            one.rate_bps as f64 / 1e6,
            one.retransmits,
            course.taken,
        )
    };
    let rows: String = group.iter().enumerate().map(row).collect();
    let drawn = match group.iter().all(|course| course.points.len() == 1) {
        true => "<p>One sample of each: there is nothing to draw over time.</p>\n".into(),
        false => figures(&plots(group)),
    };
    format!(
        "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<tr><th>last seen</th><th>cwnd</th>\
         <th>ssthresh</th><th>sRTT, ms</th><th>rate, Mbit/s</th><th>retransmits</th>\
         <th>samples</th></tr>\n{rows}</table></div>\n{drawn}",
        escape(&title)
    )
}

fn plots(group: &[&Course]) -> Vec<Plot> {
    DRAWN
        .iter()
        .enumerate()
        .map(|(at, (title, unit, value))| {
            let lines = group.iter().enumerate().flat_map(|(colour, course)| {
                let points = |value: &dyn Fn(&Sample) -> f64| {
                    course.points.iter().map(|one| (one.at_s, value(one))).collect()
                };
                let line = Line { colour, is_dashed: false, points: points(value) };
                let threshold = |one: &Sample| one.ssthresh.map_or(f64::NAN, f64::from);
                let dashed = Line { colour, is_dashed: true, points: points(&threshold) };
                std::iter::once(line).chain((at == 0).then_some(dashed))
            });
            Plot { title, unit, lines: lines.collect() }
        })
        .collect()
}

fn connection_section(number: usize, connection: &ConnectionReport, bin_s: f64) -> String {
    let kind = match connection.mptcp {
        true => format!("MPTCP, tokens {}", connection.tokens()),
        false => "TCP".into(),
    };
    let rows: String = connection
        .subflows
        .iter()
        .enumerate()
        .flat_map(|(index, subflow)| {
            let ways = [("out", &subflow.out), ("back", &subflow.back)];
            ways.map(|(name, way)| subflow_row(index, subflow, name, way))
        })
        .collect();
    let mut plots = Vec::new();
    for (way, titles) in
        [(0, ["Throughput, out", "Carried, out"]), (1, ["Throughput, back", "Carried, back"])]
    {
        let of =
            |subflow: &SubflowReport| if way == 0 { &subflow.out } else { &subflow.back }.clone();
        if connection.subflows.iter().any(|subflow| of(subflow).bytes > 0) {
            let lines = |draw: fn(&WayReport, f64) -> Vec<(f64, f64)>| {
                let line = |(colour, subflow): (usize, &SubflowReport)| Line {
                    colour,
                    is_dashed: false,
                    points: draw(&of(subflow), bin_s),
                };
                connection.subflows.iter().enumerate().map(line).collect()
            };
            plots.push(Plot { title: titles[0], unit: "Mbit/s", lines: lines(rates) });
            plots.push(Plot { title: titles[1], unit: "MB", lines: lines(sums) });
        }
    }
    format!(
        "<h2>Connection {number}: {}</h2>\n<div class=\"scroll\"><table>\n<tr><th>subflow</th>\
         <th>way</th><th>MB</th><th>Mbit/s</th><th>share</th><th>repeated, MB</th>\
         <th>segments</th></tr>\n{rows}</table></div>\n{}",
        escape(&kind),
        figures(&plots)
    )
}

fn subflow_row(index: usize, subflow: &SubflowReport, name: &str, way: &WayReport) -> String {
    let ends = escape(&format!("{} to {}", subflow.client, subflow.server));
    format!(
        "<tr><td>{} {ends}</td><td>{name}</td><td>{:.3}</td><td>{:.2}</td><td>{:.1} %</td>\
         <td>{:.3}</td><td>{}</td></tr>\n",
        key(index),
        way.bytes as f64 / 1e6,
        way.mbps,
        way.share * 100.0,
        way.repeated_bytes as f64 / 1e6,
        way.segments,
    )
}

fn rates(way: &WayReport, bin_s: f64) -> Vec<(f64, f64)> {
    let point = |(index, bytes): (usize, &u64)| {
        (way.first_bin_s + (index as f64 + 0.5) * bin_s, *bytes as f64 * 8.0 / 1e6 / bin_s)
    };
    way.bins.iter().enumerate().map(point).collect()
}

fn sums(way: &WayReport, bin_s: f64) -> Vec<(f64, f64)> {
    let mut sum = 0;
    let mut points = vec![(way.first_bin_s, 0.0)];
    for (index, bytes) in way.bins.iter().enumerate() {
        sum += bytes;
        points.push((way.first_bin_s + (index as f64 + 1.0) * bin_s, sum as f64 / 1e6));
    }
    points
}

fn figures(plots: &[Plot]) -> String {
    let figure = |plot: &Plot| {
        format!("<figure><figcaption>{}</figcaption>{}</figure>\n", escape(plot.title), plot.svg())
    };
    format!("<div class=\"plots\">\n{}</div>\n", plots.iter().map(figure).collect::<String>())
}

/// The sign of a line in the table.
fn key(index: usize) -> String {
    let colour = index % COLOURS;
    format!(
        "<svg class=\"key\" viewBox=\"0 0 26 10\"><path class=\"line c{colour}\" d=\"M1 5h24\"/>\
         </svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::sample;

    #[test]
    fn what_was_seen_once_has_a_row_and_no_plots() {
        let mut courses = Courses::default();
        courses.take(sample(1.0, 1, Some(7)));
        courses.take(sample(1.1, 2, Some(7)));
        let once = trace(&[], &courses);
        assert!(once.contains("nothing to draw") && !once.contains("<figure>"), "{once}");
        assert_eq!(once.matches("<tr><td>").count(), 2);
        courses.take(sample(1.2, 2, Some(7)));
        let twice = trace(&[], &courses);
        assert_eq!(twice.matches("<figure>").count(), DRAWN.len());
        assert!(!twice.contains("nothing to draw"));
    }

    #[test]
    fn a_page_has_every_connection_and_loads_nothing() {
        let mut courses = Courses::default();
        for socket in 0..PLOTTED_MAX as u64 + 1 {
            courses.take(sample(1.0, socket, Some(7 + socket as u32 / 2)));
            courses.take(sample(2.0, socket, Some(7 + socket as u32 / 2)));
        }
        for socket in 0..2 * PLOTTED_MAX as u64 {
            courses.take(sample(1.0, 1000 + socket, None));
            courses.take(sample(2.0, 1000 + socket, None));
        }
        let page = trace(&["it <cost> much".into()], &courses);
        assert!(page.contains("Connection 1: MPTCP, token 00000007"));
        assert!(page.contains("it &lt;cost&gt; much") && page.contains("91 more connections"));
        assert_eq!(page.matches("<figure>").count(), PLOTTED_MAX * DRAWN.len());
        for word in ["http://", "https://", "<script", "src=", "NaN"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
