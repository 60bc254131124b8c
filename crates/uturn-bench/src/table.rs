//! What was measured, for people.

use crate::contestant::Contestant;
use crate::load::Measured;
use crate::row::Row;

/// Measured as fast as answers came.
#[derive(Clone, Debug)]
pub(crate) struct Full {
    /// Requests a second.
    pub(crate) per_second: f64,
    /// Microseconds on a core for each request.
    pub(crate) cpu: f64,
    pub(crate) measured: Measured,
}

/// Measured at a constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    /// Microseconds on a core for each request.
    pub(crate) cpu: f64,
    pub(crate) measured: Measured,
}

/// Memory of a process, in kB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// A number of each contestant.
struct Column {
    heading: &'static str,
    more_is_better: bool,
    numbers: Vec<f64>,
}

/// Prints speed and times: medians over the rounds.
pub(crate) fn print_speed(
    row: Row,
    rate: u32,
    contestants: &[Contestant],
    full: &[Vec<Full>],
    constant: &[Vec<Constant>],
) {
    let of_full = |heading, more_is_better, number: fn(&Full) -> f64| Column {
        heading,
        more_is_better,
        numbers: full.iter().map(|samples| median(samples, number)).collect(),
    };
    let of_constant = |heading, number: fn(&Constant) -> f64| Column {
        heading,
        more_is_better: false,
        numbers: constant.iter().map(|samples| median(samples, number)).collect(),
    };
    let columns = [
        of_full("requests/s", true, |full| full.per_second),
        of_full("CPU µs", false, |full| full.cpu),
        of_constant("p50 µs", |constant| constant.measured.p50),
        of_constant("p99 µs", |constant| constant.measured.p99),
        of_constant("p99.9 µs", |constant| constant.measured.p999),
        of_constant("CPU µs", |constant| constant.cpu),
    ];
    println!("\n{}: {} connections, then {rate} requests/s", row.title(), row.connections());
    print(contestants, &columns);
    for (contestant, (full, constant)) in contestants.iter().zip(full.iter().zip(constant)) {
        let of_full = full.iter().map(|full| &full.measured);
        let all = of_full.chain(constant.iter().map(|constant| &constant.measured));
        let (failed, unanswered) = all.fold((0, 0), |(failed, unanswered), measured| {
            (failed + measured.failed, unanswered + measured.unanswered)
        });
        if failed + unanswered > 0 {
            println!("{}: {failed} failed, {unanswered} were not answered", contestant.name());
        }
    }
}

/// Prints what connections took.
pub(crate) fn print_memory(row: Row, contestants: &[Contestant], samples: &[Memory]) {
    let kilobytes = |memory: &Memory| {
        memory.after.saturating_sub(memory.before) as f64 / row.connections() as f64
    };
    let columns = [
        Column {
            heading: "kB each",
            more_is_better: false,
            numbers: samples.iter().map(kilobytes).collect(),
        },
        Column {
            heading: "kB without",
            more_is_better: false,
            numbers: samples.iter().map(|memory| memory.before as f64).collect(),
        },
    ];
    println!("\n{}", row.title());
    print(contestants, &columns);
}

fn print(contestants: &[Contestant], columns: &[Column]) {
    print!("{:<12}", "");
    for column in columns {
        print!("{:>12}", column.heading);
    }
    println!();
    for (number, contestant) in contestants.iter().enumerate() {
        print!("{:<12}", contestant.name());
        for column in columns {
            let value = column.numbers[number];
            let digits = if value < 100.0 { 1 } else { 0 };
            print!("{value:>12.digits$}");
        }
        println!();
    }
    if contestants.len() > 1 {
        print!("{:<12}", "to the best");
        for column in columns {
            print!("{:>11.2}×", column.first_to_best());
        }
        println!();
    }
}

impl Column {
    /// How the first compares with the best of the others; above 1 it is better.
    fn first_to_best(&self) -> f64 {
        let [first, others @ ..] = self.numbers.as_slice() else { return f64::NAN };
        let others = others.iter().copied();
        match self.more_is_better {
            true => first / others.fold(f64::NEG_INFINITY, f64::max),
            false => others.fold(f64::INFINITY, f64::min) / first,
        }
    }
}

/// The median of a number over samples.
pub(crate) fn median<T>(samples: &[T], number: impl Fn(&T) -> f64) -> f64 {
    let mut numbers: Vec<f64> = samples.iter().map(number).collect();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        length if length % 2 == 0 => f64::midpoint(numbers[middle - 1], numbers[middle]),
        _ => numbers[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0], |number| *number), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0], |number| *number), 2.5);
    }

    #[test]
    fn better_is_above_one_whatever_is_measured() {
        let column = |more_is_better, numbers: [f64; 3]| Column {
            heading: "",
            more_is_better,
            numbers: numbers.into(),
        };
        assert_eq!(column(true, [30.0, 10.0, 20.0]).first_to_best(), 1.5);
        assert_eq!(column(false, [30.0, 60.0, 90.0]).first_to_best(), 2.0);
    }
}
