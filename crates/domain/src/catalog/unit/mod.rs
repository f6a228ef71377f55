//! Units of columns: codes of UCUM, the Unified Code for Units of Measure (case-sensitive form).

mod compare;
mod signs;
mod spellings;
mod times;
mod written;
#[cfg(test)]
mod written_tests;

pub use self::{
    compare::{UnitMatch, compare_unit},
    times::unit_besides_seconds,
    written::ucum_of,
};

/// Maximum number of characters of a unit.
const MAX_LENGTH: usize = 100;

/// Prefixes of metric units.
const PREFIXES: [&str; 24] = [
    "Y", "Z", "E", "P", "T", "G", "M", "k", "h", "da", "d", "c", "m", "u", "n", "p", "f", "a", "z",
    "y", "Ki", "Mi", "Gi", "Ti",
];

/// Units that take a prefix.
const METRIC: &str = "m s g rad K C cd mol sr Hz N Pa J W A V F Ohm S Wb Cel T H lm lx Bq Gy Sv l L ar t bar u \
    eV pc [c] [h] [k] [eps_0] [mu_0] [e] [m_e] [m_p] [G] [g] [ly] gf Ky Gal dyn erg P Bi St Mx G Oe Gb sb Lmb \
    ph Ci R RAD REM cal_[15] cal_[20] cal_m cal_IT cal_th cal tex m[H2O] m[Hg] eq osm g% kat U [iU] [IU] Np B \
    B[SPL] B[V] B[mV] B[uV] B[10.nV] B[W] B[kW] st mho bit By Bd";

/// Units that take none.
const OTHERS: &str = "10* 10^ [pi] % [ppth] [ppm] [ppb] [pptr] gon deg ' '' min h d a_t a_j a_g a wk mo_s mo_j \
    mo_g mo AU atm att [lbf_av] [in_i] [ft_i] [yd_i] [mi_i] [fth_i] [nmi_i] [kn_i] [sin_i] [sft_i] [syd_i] \
    [cin_i] [cft_i] [cyd_i] [bf_i] [cr_i] [mil_i] [cml_i] [hd_i] [ft_us] [yd_us] [in_us] [rd_us] [ch_us] [lk_us] \
    [rch_us] [rlk_us] [fth_us] [fur_us] [mi_us] [acr_us] [srd_us] [smi_us] [sct] [twp] [mil_us] [in_br] [ft_br] \
    [rd_br] [ch_br] [lk_br] [fth_br] [pc_br] [yd_br] [mi_br] [nmi_br] [kn_br] [acr_br] [gal_us] [bbl_us] [qt_us] \
    [pt_us] [gil_us] [foz_us] [fdr_us] [min_us] [crd_us] [bu_us] [gal_wi] [pk_us] [dqt_us] [dpt_us] [tbs_us] \
    [tsp_us] [cup_us] [foz_m] [cup_m] [tsp_m] [tbs_m] [gal_br] [pk_br] [bu_br] [qt_br] [pt_br] [gil_br] [foz_br] \
    [fdr_br] [min_br] [gr] [lb_av] [oz_av] [dr_av] [scwt_av] [lcwt_av] [ston_av] [lton_av] [stone_av] [pwt_tr] \
    [oz_tr] [lb_tr] [sc_ap] [dr_ap] [oz_ap] [lb_ap] [oz_m] [lne] [pnt] [pca] [pnt_pr] [pca_pr] [pied] [pouce] \
    [ligne] [didot] [cicero] [degF] [degR] [degRe] [Cal] [Btu_39] [Btu_59] [Btu_60] [Btu_m] [Btu_IT] [Btu_th] \
    [Btu] [HP] [den] [in_i'H2O] [in_i'Hg] [PRU] [wood'U] [diop] [p'diop] %[slope] [mesh_i] [Ch] [drp] [hnsf'U] \
    [MET] [hp'_X] [hp'_C] [hp'_M] [hp'_Q] [hp_X] [hp_C] [hp_M] [hp_Q] [kp_X] [kp_C] [kp_M] [kp_Q] [pH] [S] [HPF] \
    [LPF] [arb'U] [USP'U] [GPL'U] [MPL'U] [APL'U] [beth'U] [anti'Xa'U] [todd'U] [dye'U] [smgy'U] [bdsk'U] [ka'U] \
    [knk'U] [mclg'U] [tb'U] [CCID_50] [TCID_50] [EID_50] [PFU] [FFU] [CFU] [IR] [BAU] [AU] [Amb'a'1'U] [PNU] [Lf] \
    [D'ag'U] [FEU] [ELU] [EU] Ao b [psi] circ sph [car_m] [car_Au] [smoot] [m/s2/Hz^0.5] [NTU] [FNU] bit_s";

/// Returns whether a text is a UCUM code: units with prefixes, exponents, products, quotients,
/// brackets and annotations, such as `ug/mL`, `10*3/uL` or `{cells}/mL`.
#[must_use]
pub fn is_ucum(code: &str) -> bool {
    let mut rest = Rest(code);
    code.len() <= MAX_LENGTH && rest.take_main().is_some() && rest.0.is_empty()
}

/// Unread rest of a code.
struct Rest<'c>(&'c str);

impl<'c> Rest<'c> {
    fn take_main(&mut self) -> Option<()> {
        // A code may begin with a quotient: `/uL`.
        self.take_char('/');
        self.take_term()
    }

    fn take_term(&mut self) -> Option<()> {
        self.take_component()?;
        while self.take_char('.') || self.take_char('/') {
            self.take_component()?;
        }
        Some(())
    }

    fn take_component(&mut self) -> Option<()> {
        if self.take_char('(') {
            // The recursion is bounded: `is_ucum` limits the length of a code.
            self.take_term()?;
            return self.take_char(')').then_some(());
        }
        if self.take_annotation()? {
            return Some(());
        }
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits {
            "" => self.take_unit()?,
            // Ten to a power is a unit itself, `10*3`; any other number is a factor.
            "10" if self.take_char('*') || self.take_char('^') => self.take_exponent()?,
            _ => {}
        }
        self.take_annotation().map(|_| ())
    }

    fn take_unit(&mut self) -> Option<()> {
        let symbol = self.take_symbol()?;
        if !is_symbol(symbol) {
            return None;
        }
        self.take_exponent()
    }

    /// An exponent, if there is one: digits with or without a sign.
    fn take_exponent(&mut self) -> Option<()> {
        let is_signed = self.take_char('+') || self.take_char('-');
        let digits = self.take_while(|c| c.is_ascii_digit());
        (!is_signed || !digits.is_empty()).then_some(())
    }

    /// The symbol of a unit: digits, points and slashes only within square brackets.
    fn take_symbol(&mut self) -> Option<&'c str> {
        let mut is_bracketed = false;
        let end = self.0.find(|c: char| {
            match c {
                '[' => is_bracketed = true,
                ']' => {
                    let was_bracketed = is_bracketed;
                    is_bracketed = false;
                    // A bracket that closes without having opened is no part of the symbol.
                    return !was_bracketed;
                }
                _ if is_bracketed => return !c.is_ascii_graphic(),
                _ => return !(c.is_ascii_alphabetic() || "%'_".contains(c)),
            }
            false
        });
        let (symbol, rest) = self.0.split_at_checked(end.unwrap_or(self.0.len()))?;
        self.0 = rest;
        Some(symbol)
    }

    /// Text in braces, which has no meaning; `None` for one without end.
    fn take_annotation(&mut self) -> Option<bool> {
        if !self.take_char('{') {
            return Some(false);
        }
        self.take_while(|c| (' '..='~').contains(&c) && c != '{' && c != '}');
        self.take_char('}').then_some(true)
    }

    fn take_char(&mut self, wanted: char) -> bool {
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'c str {
        let end = self.0.find(|c| !wanted(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at_checked(end).unwrap_or((self.0, ""));
        self.0 = rest;
        taken
    }
}

fn is_symbol(symbol: &str) -> bool {
    let is_metric = |symbol: &str| METRIC.split_whitespace().any(|unit| unit == symbol);
    is_metric(symbol)
        || OTHERS.split_whitespace().any(|unit| unit == symbol)
        || PREFIXES
            .iter()
            .any(|prefix| symbol.strip_prefix(prefix).is_some_and(is_metric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_laboratory_are_ucum() {
        for code in [
            "ug/mL",
            "mg/dL",
            "g/L",
            "uL",
            "mL",
            "nm",
            "Cel",
            "K",
            "h",
            "min",
            "s",
            "%",
            "1",
            "mol/L",
            "mmol/L",
            "10*3/uL",
            "10*6/mL",
            "10^6",
            "{cells}/mL",
            "{OD600}",
            "/uL",
            "/min",
            "m/s2",
            "kg.m2/s2",
            "mm[Hg]",
            "[pH]",
            "[degF]",
            "U/L",
            "[IU]/mL",
            "[CFU]/mL",
            "ng/(24.h)",
            "m-1",
            "s-1",
            "kPa",
            "umol/min/mg{protein}",
            "B[10.nV]",
            "[m/s2/Hz^0.5]",
            "Ohm",
            "kbit",
            "mol/m3",
            "[in_i]",
            "'",
            "''",
            "%[slope]",
            "kBq",
            "uS/cm",
            "100.g",
            "1/s",
            "rad",
            "dag",
        ] {
            assert!(is_ucum(code), "{code}");
        }
    }

    #[test]
    fn what_people_write_otherwise_is_none() {
        for text in [
            "",
            " ",
            "µg/mL",
            "μL",
            "°C",
            "ug / mL",
            "ug/ml/",
            "mcg",
            "cells/mL",
            "ppm",
            "OD",
            "ug per mL",
            "mL)",
            "(mL",
            "{cells",
            "cells}",
            "m^2",
            "m+",
            "kmin",
            "mh",
            "10*-",
            "[mL]",
            "x",
            "m//s",
            ".m",
            "ug\u{a0}",
            "[",
            "]",
            "m]",
            "\u{212a}",
        ] {
            assert!(!is_ucum(text), "{text:?}");
        }
        assert!(!is_ucum(&"m.".repeat(60)));
    }
}
