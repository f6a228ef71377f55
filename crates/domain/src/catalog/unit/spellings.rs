//! Spellings that people write in place of a UCUM code.

/// Letters that alone are a unit in a header.
const LETTERS: &str = "msgLlhdKCFVAWJUM";

/// Spellings in exactly these letters, which UCUM would read otherwise or not at all.
const EXACT: [(&str, &str); 12] = [
    ("C", "Cel"),
    ("F", "[degF]"),
    ("\u{b0}C", "Cel"),
    ("\u{b0}F", "[degF]"),
    ("\u{b0}K", "K"),
    ("\u{b0}", "deg"),
    ("\u{2030}", "[ppth]"),
    ("\u{c5}", "Ao"),
    ("\u{3a9}", "Ohm"),
    ("pH", "[pH]"),
    // In a laboratory these are units of absorbance, in UCUM astronomical ones.
    ("AU", "{AU}"),
    ("Mio", "10*6"),
];

/// Spellings that take the prefixes of UCUM.
const PREFIXED: [(&str, &str); 6] = [
    // UCUM has both letters for the litre.
    ("l", "L"),
    ("M", "mol/L"),
    ("Da", "u"),
    ("IU", "[IU]"),
    ("sec", "s"),
    ("\u{3a9}", "Ohm"),
];

/// Words in any case, by their code.
const WORDS: [(&str, &str); 48] = [
    ("s", "sec secs"),
    ("ms", "msec msecs"),
    ("us", "usec usecs"),
    ("ns", "nsec nsecs"),
    ("min", "min mins minute minutes minuten minutos minuti"),
    (
        "h",
        "hr hrs hour hours stunde stunden heure heures hora horas",
    ),
    ("d", "day days tag tage jour jours d\u{ed}a d\u{ed}as"),
    ("wk", "week weeks woche wochen semaine semaines"),
    ("mo", "month months monat monate"),
    ("a", "year years yr yrs jahr jahre"),
    ("g", "gm gms"),
    ("ug", "mcg"),
    ("uL", "mcl"),
    ("L", "ltr ltrs"),
    ("cm3", "cc ccm"),
    ("um", "micron microns"),
    (
        "%",
        "percent pct percentage prozent pourcent porcentaje percento",
    ),
    ("1", "fraction ratio proportion unitless dimensionless"),
    ("[ppth]", "permille promille permil"),
    ("[ppm]", "ppm"),
    ("[ppb]", "ppb"),
    ("Cel", "celsius centigrade degc"),
    ("[degF]", "fahrenheit degf"),
    ("K", "kelvin kelvins degk"),
    (
        "Ao",
        "angstrom angstroms \u{e5}ngstr\u{f6}m angstr\u{f6}m \u{e5}ngstrom",
    ),
    ("[lb_av]", "lb lbs pound pounds"),
    ("[oz_av]", "oz ounce ounces"),
    ("[in_i]", "inch inches"),
    ("[ft_i]", "ft foot feet"),
    ("[psi]", "psi"),
    ("mm[Hg]", "mmhg"),
    ("cm[H2O]", "cmh2o"),
    ("/min", "rpm"),
    ("[g]", "xg rcf"),
    ("[CFU]", "cfu cfus"),
    ("[PFU]", "pfu pfus"),
    ("10*3", "thousand thousands"),
    ("10*6", "million millions"),
    ("{cells}", "cell cells zellen"),
    ("{copies}", "copy copies"),
    ("{particles}", "particle particles"),
    ("{counts}", "count counts"),
    ("{events}", "event events"),
    ("{molecules}", "molecule molecules"),
    ("{bp}", "bp"),
    ("{OD}", "od"),
    ("{RFU}", "rfu rfus"),
    ("{RLU}", "rlu rlus"),
];

/// Words in any case that take the prefixes below.
const METRIC_WORDS: [(&str, &str); 19] = [
    ("L", "liter liters litre litres litro litros litri"),
    (
        "g",
        "gram grams gramme grammes gramm gramo gramos grammo grammi",
    ),
    ("m", "meter meters metre metres metro metros"),
    ("mol", "mol mols mole moles"),
    ("mol/L", "molar"),
    (
        "s",
        "second seconds sekunde sekunden seconde secondes segundo segundos secondi",
    ),
    ("Hz", "hertz"),
    ("Pa", "pascal pascals"),
    ("bar", "bar bars"),
    ("V", "volt volts"),
    ("A", "amp amps ampere amperes"),
    ("W", "watt watts"),
    ("J", "joule joules"),
    ("N", "newton newtons"),
    ("T", "tesla teslas"),
    ("Bq", "becquerel becquerels"),
    ("u", "dalton daltons"),
    ("Ohm", "ohm ohms"),
    ("S", "siemens"),
];

const PREFIX_WORDS: [(&str, &str); 16] = [
    ("micro", "u"),
    ("mikro", "u"),
    ("milli", "m"),
    ("mili", "m"),
    ("nano", "n"),
    ("pico", "p"),
    ("piko", "p"),
    ("femto", "f"),
    ("centi", "c"),
    ("zenti", "c"),
    ("deci", "d"),
    ("dezi", "d"),
    ("kilo", "k"),
    ("hecto", "h"),
    ("mega", "M"),
    ("giga", "G"),
];

/// Words that are an annotation below a slash; elsewhere they name what was measured: `(sample)`.
const PER: [(&str, &str); 14] = [
    ("{well}", "well wells"),
    ("{plate}", "plate plates"),
    ("{sample}", "sample samples"),
    ("{reaction}", "reaction reactions rxn rxns"),
    ("{tube}", "tube tubes"),
    ("{vial}", "vial vials"),
    ("{animal}", "animal animals"),
    ("{mouse}", "mouse mice"),
    ("{test}", "test tests"),
    ("{dose}", "dose doses"),
    ("{drop}", "drop drops droplet droplets"),
    ("{field}", "field fields"),
    ("{lane}", "lane lanes"),
    ("{protein}", "protein proteins"),
];

/// Whole texts in any case.
const PHRASES: [(&str, &str); 12] = [
    ("-", "1"),
    ("x g", "[g]"),
    ("a.u.", "{AU}"),
    ("a.u", "{AU}"),
    ("a. u.", "{AU}"),
    ("arb. u.", "{AU}"),
    ("arb. units", "{AU}"),
    ("arbitrary units", "{AU}"),
    ("per cent", "%"),
    ("parts per million", "[ppm]"),
    ("parts per billion", "[ppb]"),
    ("parts per thousand", "[ppth]"),
];

/// Words for a degree in front of a scale of temperature.
const DEGREES: [&str; 6] = ["degrees", "degree", "grad", "deg.", "deg", "\u{b0}"];

const SCALES: [(&str, &str); 3] = [
    ("Cel", "c celsius centigrade"),
    ("[degF]", "f fahrenheit"),
    ("K", "k kelvin"),
];

/// Words for units that have several meanings, or that no table above has.
const UNCLEAR: &str = "unit units einheit einheiten degree degrees gallon gallons pint pints quart quarts ton tons \
    tonne tonnes calorie calories billion billions trillion trillions grain grains stone stones yard yards mile \
    miles knots acre acres cubic square hundred gauss poise stokes kilos";

/// Returns whether a single letter is none of the letters that alone are a unit.
pub(super) fn is_other_letter(text: &str) -> bool {
    let mut letters = text.chars();
    let only = letters.next().filter(|_| letters.next().is_none());
    only.is_some_and(|only| only.is_ascii_alphabetic() && !LETTERS.contains(only))
}

/// The code of a text that is a unit as a whole.
pub(super) fn phrase(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let temperature = || {
        let scale = DEGREES.iter().find_map(|it| text.strip_prefix(it))?;
        worded(&SCALES, scale.trim())
    };
    let whole = PHRASES.iter().find(|(spelling, _)| *spelling == text);
    whole.map(|(_, code)| *code).or_else(temperature)
}

/// The code of a spelling in exactly these letters, with or without a prefix.
pub(super) fn exact(symbol: &str, prefixes: &[&'static str]) -> Option<String> {
    if let Some((_, code)) = EXACT.iter().find(|(spelling, _)| *spelling == symbol) {
        return Some((*code).to_owned());
    }
    PREFIXED.iter().find_map(|(spelling, code)| {
        let prefix = symbol.strip_suffix(spelling)?;
        (prefix.is_empty() || prefixes.contains(&prefix)).then(|| format!("{prefix}{code}"))
    })
}

/// The code of a word in any case, with or without a prefix.
pub(super) fn word(symbol: &str) -> Option<String> {
    let word = symbol.to_lowercase();
    if let Some(code) = worded(&WORDS, &word).or_else(|| worded(&METRIC_WORDS, &word)) {
        return Some(code.to_owned());
    }
    PREFIX_WORDS.iter().find_map(|(prefix, letter)| {
        let code = worded(&METRIC_WORDS, word.strip_prefix(prefix)?)?;
        Some(format!("{letter}{code}"))
    })
}

/// The annotation for a word below a slash.
pub(super) fn per(symbol: &str) -> Option<String> {
    worded(&PER, &symbol.to_lowercase()).map(str::to_owned)
}

/// Returns whether a word is a unit, though not one that can be read.
pub(super) fn is_unclear(word: &str) -> bool {
    let word = word.to_lowercase();
    UNCLEAR.split_whitespace().any(|unclear| unclear == word)
}

fn worded(table: &[(&'static str, &str)], word: &str) -> Option<&'static str> {
    let found = table
        .iter()
        .find(|(_, words)| words.split(' ').any(|known| known == word));
    found.map(|(code, _)| *code)
}
