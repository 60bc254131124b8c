//! Evaluates shares: numbers and small formulas over N, the number of nodes.

/// Returns the value of a formula such as `1/N`, `(N-1)/N` or `0.25`. `None` if it is invalid.
pub(super) fn value(text: &str, nodes: usize) -> Option<f64> {
    let mut formula = Formula { rest: text.as_bytes(), nodes: nodes as f64, depth: 0 };
    let value = formula.sum()?;
    formula.skip_blank();
    (formula.rest.is_empty() && value.is_finite()).then_some(value)
}

struct Formula<'a> {
    rest: &'a [u8],
    nodes: f64,
    depth: usize,
}

impl Formula<'_> {
    fn skip_blank(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn eat(&mut self, wanted: u8) -> bool {
        self.skip_blank();
        match self.rest.split_first() {
            Some((first, rest)) if *first == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product()?;
        loop {
            if self.eat(b'+') {
                value += self.product()?;
            } else if self.eat(b'-') {
                value -= self.product()?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.factor()?;
        loop {
            if self.eat(b'*') {
                value *= self.factor()?;
            } else if self.eat(b'/') {
                value /= self.factor()?;
            } else {
                return Some(value);
            }
        }
    }

    fn factor(&mut self) -> Option<f64> {
        if self.eat(b'(') {
            self.depth += 1;
            let value = if self.depth > 16 { None } else { self.sum() };
            return value.filter(|_| self.eat(b')'));
        }
        if self.eat(b'N') {
            return Some(self.nodes);
        }
        let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let length = self.rest.iter().take_while(|byte| digits(byte)).count();
        let (number, rest) = self.rest.split_at(length);
        self.rest = rest;
        std::str::from_utf8(number).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn formulas() {
        for (text, nodes, share) in [
            ("0.25", 3, 0.25),
            ("1/4", 3, 0.25),
            ("1/N", 4, 0.25),
            ("(N-1)/N", 4, 0.75),
            (" ( N - 1 ) / N ", 1, 0.0),
            ("1 - 1/N", 2, 0.5),
            ("2*1/N", 4, 0.5),
        ] {
            assert_eq!(value(text, nodes), Some(share), "{text}");
        }
        let deep = "(".repeat(100_000);
        for text in ["", "x", "1/", "1/0", "(1", "1)", "n", "1 2", "-1", deep.as_str()] {
            assert_eq!(value(text, 3), None, "{text}");
        }
    }
}
