//! Quantities: the prints that eviction messages depend on, and rejected texts.

use evictlab_rules::quantity::{Quantity, QuantityError};

#[test]
fn prints_bytes_and_counts() {
    let rows = [
        (0, "0"),
        (500, "500"),
        (1025, "1025"),
        (49_152, "48Ki"),
        (104_857_600, "100Mi"),
        (1_048_576_000, "1000Mi"),
        (1_610_612_736, "1536Mi"),
        (1_552_842_752, "1516448Ki"),
        (3_910_107_136, "3818464Ki"),
        (209_715_203, "209715203"),
        (1_000_000, "1000000"),
        (1 << 60, "1Ei"),
        (-2048, "-2Ki"),
    ];
    for (bytes, print) in rows {
        assert_eq!(Quantity::from_bytes(bytes).to_string(), print);
    }
    for (count, print) in [(12_000, "12k"), (1_000_000, "1M"), (1200, "1200"), (0, "0"), (-500, "-500")] {
        assert_eq!(Quantity::from_count(count).to_string(), print);
    }
}

#[test]
fn prints_parsed_texts() {
    let rows = [
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1073741824", "1073741824"),
        ("1000000000", "1G"),
        ("500M", "500M"),
        ("0.5Gi", "512Mi"),
        ("1e9", "1e9"),
        ("1e4", "10e3"),
        ("0", "0"),
        ("00", "0"),
        ("0Mi", "0"),
        ("1500Mi", "1500Mi"),
        ("100Mi", "100Mi"),
        ("+100Mi", "+100Mi"),
        ("0100Mi", "0100Mi"),
        ("+1024Mi", "1Gi"),
        ("1500M", "1500M"),
        ("1.250G", "1.250G"),
        ("1.25G", "1250M"),
        ("100m", "100m"),
        ("0.1", "100m"),
        ("0.0001Ki", "102400u"),
        ("1.1Ki", "1126400m"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("8Ei", "9223372036854775807"),
        ("1000E", "1e21"),
        ("-", "0"),
    ];
    for (text, print) in rows {
        assert_eq!(text.parse::<Quantity>().unwrap().to_string(), print, "{text}");
    }
    assert_eq!(Quantity::parse_verbatim("1000000").unwrap().to_string(), "1000000");
}

#[test]
fn orders_sums_and_rounds() {
    let quantity = |text: &str| text.parse::<Quantity>().unwrap();
    assert_eq!(quantity("1Gi"), quantity("1024Mi"));
    assert!(quantity("1G") < quantity("1Gi"));
    // A sum prints in the format of its first operand, without the kept text.
    assert_eq!((quantity("0100Mi") + &quantity("24M")).to_string(), "128857600");
    assert_eq!((Quantity::ZERO + &quantity("100Mi")).to_string(), "100Mi");
    assert_eq!((quantity("1Gi") - &quantity("2Gi")).to_string(), "-1Gi");
    for (text, value) in
        [("1.5", 2), ("-1.5", -2), ("100m", 1), ("1Ki", 1024), ("10E", i64::MAX), ("-10E", i64::MIN)]
    {
        assert_eq!(quantity(text).value(), value, "{text}");
    }
}

#[test]
fn rejects_other_texts() {
    let rows = [
        ("", "invalid quantity \"\": expected a form like"),
        ("100MB", "invalid quantity \"100MB\": unexpected 'B' at character 5"),
        ("1 Gi", "invalid quantity \"1 Gi\": unexpected ' ' at character 2"),
        ("ein", "invalid quantity \"ein\": unknown suffix \"ein\""),
        ("1.2.3", "invalid quantity \"1.2.3\": unexpected '.' at character 4"),
        ("1ki", "invalid quantity \"1ki\": unknown suffix \"ki\""),
        ("1e40", "invalid quantity \"1e40\": the number is greater than 1.7e29"),
    ];
    for (text, expected) in rows {
        let error: QuantityError = text.parse::<Quantity>().unwrap_err();
        assert!(error.to_string().starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn reads_and_writes_json() {
    let read = |text| serde_json::from_str::<Quantity>(text).unwrap().to_string();
    assert_eq!([read("\"1.5Gi\""), read("2"), read("0.5")], ["1536Mi", "2", "500m"]);
    assert_eq!(serde_json::to_string(&Quantity::from_bytes(2048)).unwrap(), "\"2Ki\"");
}
