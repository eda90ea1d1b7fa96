//! What a search came to, as Markdown.

use std::fmt::Write;

use super::{Answer, Known, Outcome, Search};
use crate::words::in_a_cell;

/// Every kubelet with its verdict, and the answer in a sentence. `case`: what was run, such as `message/sidecars-are-named`.
pub fn tell(search: &Search, outcome: &Outcome, case: &str) -> String {
    let course = &search.course;
    let name = |place: usize| course.candidates[place].name.as_str();
    let mut text = "| kubelet | verdict | seen |\n|-|-|-|\n".to_owned();
    let end = course.candidates.len() - 1;
    for (place, (candidate, known)) in course.candidates.iter().zip(&search.known).enumerate() {
        let said = match place {
            0 => format!("said to be {}", course.first.word()),
            place if place == end => format!("said to be {}", course.last().word()),
            _ => "not needed".to_owned(),
        };
        let (verdict, seen) = match known {
            Known::No => (said, "not tried".to_owned()),
            Known::Answered { answer: Answer::Told(standing, verdict), boot } => {
                (format!("{}: {verdict}", standing.word()), format!("cluster {boot}"))
            }
            Known::Answered { answer: Answer::Nothing(why), boot } => {
                (format!("skipped: {}", in_a_cell(why)), format!("cluster {boot}"))
            }
            Known::Answered { answer: Answer::NotHad(why), .. } => {
                (format!("skipped: {}", in_a_cell(why)), "not to be had".to_owned())
            }
        };
        let version = candidate.version.to_string();
        let shown =
            if candidate.name == version { version } else { format!("{} ({version})", candidate.name) };
        let _ = writeln!(text, "| {shown} | {verdict} | {seen} |");
    }
    let clusters =
        if search.boots == 1 { "1 cluster".to_owned() } else { format!("{} clusters", search.boots) };
    let sentence = match outcome {
        Outcome::Found { last, first } if last + 1 == *first => format!(
            "**{}** is the first kubelet on which {case} is {}; it is {} on {}.",
            name(*first),
            course.last().word(),
            course.first.word(),
            name(*last)
        ),
        Outcome::Found { last, first } => {
            let between: Vec<&str> = (last + 1..=*first).map(name).collect();
            format!(
                "The first kubelet on which {case} is {} is one of **{}**: what lies before the last of them told nothing. It is {} on {}.",
                course.last().word(),
                between.join("**, **"),
                course.first.word(),
                name(*last)
            )
        }
        Outcome::NotAsSaid(place) => {
            let said = if *place == 0 { course.first } else { course.last() };
            let is = if *place == 0 { course.last() } else { course.first };
            format!(
                "{} was said to be {} and is {}: nothing can be found between {} and {}.",
                name(*place),
                said.word(),
                is.word(),
                name(0),
                name(end)
            )
        }
        Outcome::Untold(place) => format!(
            "{} told nothing, and without both ends nothing can be found between {} and {}.",
            name(*place),
            name(0),
            name(end)
        ),
    };
    let _ = writeln!(text, "\n{sentence}\n\nIt took {clusters}.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::search::tests::{binary, release};
    use crate::bisect::{Standing, ordered};

    #[test]
    fn every_kubelet_and_the_answer_are_told() {
        let between = ["v1.31.14", "v1.32.13", "v1.33.1", "v1.36.2"].map(release).to_vec();
        let course = ordered(binary("./kubelet", "v1.37.0"), release("v1.31.14"), between).unwrap();
        let mut search = Search::new(course);
        let answered = |answer| Known::Answered { answer, boot: 1 };
        search.known[0] = answered(Answer::Told(Standing::Bad, "reproduced".to_owned()));
        search.known[1] = answered(Answer::Nothing("inconclusive 3 times: killed | for memory\n".to_owned()));
        search.known[2] = answered(Answer::Told(Standing::Good, "passed".to_owned()));
        search.boots = 1;
        let outcomes = [
            Outcome::Found { last: 0, first: 2 },
            Outcome::Found { last: 0, first: 1 },
            Outcome::NotAsSaid(0),
            Outcome::Untold(4),
        ];
        let all = outcomes.map(|outcome| tell(&search, &outcome, "message/sidecars-are-named"));
        insta::assert_snapshot!(all.join("\n---\n\n"));
    }
}
