//! Real answers of the control socket fit the schema of `docs/spec/control.md`.

use serde_json::Value;

use super::run;

/// Checks a value against the part of JSON Schema that the page's schema uses.
fn fits(value: &Value, schema: &Value, defs: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {value} against {schema}"));
    if let Some(name) = schema["$ref"].as_str() {
        return fits(value, &defs[name.trim_start_matches("#/$defs/")], defs);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(any) = schema[key].as_array() {
            let fitting = any.iter().filter(|one| fits(value, one, defs).is_ok()).count();
            if fitting == 0 {
                return wrong(key);
            }
        }
    }
    let is_of = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        _ => false,
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind)) {
        return wrong("type");
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return wrong("const");
    }
    if let Some(items) = value.as_array() {
        items.iter().try_for_each(|item| fits(item, &schema["items"], defs))?;
    }
    let Some(fields) = value.as_object() else { return Ok(()) };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if !fields.contains_key(name) {
            return wrong(&format!("{name} is missing"));
        }
    }
    for (name, field) in fields {
        match schema["properties"].get(name) {
            Some(known) => fits(field, known, defs)?,
            None if schema["additionalProperties"] == false => {
                return wrong(&format!("{name} is unknown"));
            }
            None => {}
        }
    }
    Ok(())
}

#[test]
fn real_answers_fit_the_schema() {
    let script = r#"
        command -v python3 >/dev/null || { echo "no python3"; exit; }
        cat > ask.py <<'END'
import socket, sys
for line in sys.stdin:
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(line.encode())
    answer = b""
    while True:
        part = s.recv(65536)
        if not part: break
        answer += part
    print(line.strip()); print(answer.decode().strip())
END
        start a; a=$!; start b; b=$!; until_true paths_up
        key=$($PLAIT keygen | $PLAIT pubkey)
        peer='{"public_key":"'$key'","endpoint":["192.0.2.1:1"],"measure":true'
        peer=$peer',"allowed_ips":["10.4.1.0/16"]}'
        python3 ask.py b.sock <<END
{"version":1,"request":"peer-list"}
{"version":1,"request":"path-list"}
{"version":1,"request":"file"}
{"version":1,"request":"peer-add","peers":[$peer]}
{"version":1,"request":"peer-list"}
{"version":1,"request":"peer-remove","public_key":"$key"}
{"version":1,"request":"path-down","path":"one"}
{"version":1,"request":"path-list"}
{"version":1,"request":"path-up","path":"one"}
{"version":1,"request":"path-standby","path":"one","standby":true}
{"version":1,"request":"path-price","path":"one","price":3}
{"version":1,"request":"path-quota","path":"one","quota":"20 GB"}
{"version":1,"request":"path-price","path":"three","price":3}
{"version":1,"request":"peer-add","peers":[{"public_key":"AAAA"}]}
{"version":2,"request":"peer-list"}
{"version":1,"request":"peer-lost"}
{"version":1,"request":"peer-list","colour":1}
{"version":1
END
    "#;
    let Some(text) = run(script) else { return };
    if text.starts_with("no python3") {
        eprintln!("skipped: no python3 here");
        return;
    }
    let schema = include_str!("../../../../docs/spec/control.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let (request, answer) = (&schema["request"], &schema["answer"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2 * 18, "{text}");
    let mut refused = 0;
    for pair in lines.chunks(2) {
        let answered: Value = serde_json::from_str(pair[1]).unwrap();
        fits(&answered, answer, &answer["$defs"]).unwrap_or_else(|error| panic!("{error}"));
        let is_done = answered.get("ok").is_some();
        refused += usize::from(!is_done);
        if is_done {
            let asked: Value = serde_json::from_str(pair[0]).unwrap();
            fits(&asked, request, &request["$defs"]).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert_eq!(refused, 6, "{text}");
    assert!(text.contains("10.4.1.0/16 is taken as 10.4.0.0/16"), "{text}");
    // The check itself can fail.
    let odd = serde_json::json!({ "version": 1, "ok": { "changed": { "warnings": [1] } } });
    assert!(fits(&odd, answer, &answer["$defs"]).is_err());
    let more = serde_json::json!({ "version": 1, "error": "a", "help": "b", "colour": 1 });
    assert!(fits(&more, answer, &answer["$defs"]).is_err());
}
