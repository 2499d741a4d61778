//! JSON in the order in which it is put together. A library would take the fields' order, or bring
//! implementations that make other tests' types ambiguous.

use core::fmt::Write as _;

#[derive(Clone)]
pub(super) enum Value {
    /// A number or a truth value.
    Plain(String),
    /// Without characters that JSON escapes.
    Text(String),
    List(Vec<Value>),
    Map(Vec<(&'static str, Value)>),
}

pub(super) fn map(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Map(fields.into_iter().collect())
}

pub(super) fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::List(values.into_iter().collect())
}

macro_rules! plain {
    ($($type:ty)*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::Plain(value.to_string())
            }
        }
    )*};
}

plain!(bool u8 u16 u32 u64);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        assert!(text.bytes().all(is_plain), "nothing is escaped here: {text:?}");
        Self::Text(text)
    }
}

impl Value {
    pub(super) fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out + "\n"
    }

    fn write(&self, out: &mut String, depth: usize) {
        let _ = match self {
            Self::Plain(value) => write!(out, "{value}"),
            Self::Text(text) => write!(out, "\"{text}\""),
            Self::List(values) => {
                return enclosed(out, depth, ['[', ']'], values, |out, value| {
                    value.write(out, depth + 1);
                });
            }
            Self::Map(fields) => {
                return enclosed(out, depth, ['{', '}'], fields, |out, (name, value)| {
                    let _ = write!(out, "\"{name}\": ");
                    value.write(out, depth + 1);
                });
            }
        };
    }
}

fn enclosed<T>(
    out: &mut String,
    depth: usize,
    [open, close]: [char; 2],
    members: &[T],
    write: impl Fn(&mut String, &T),
) {
    out.push(open);
    for (at, member) in members.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        write(out, member);
    }
    if !members.is_empty() {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
    out.push(close);
}
