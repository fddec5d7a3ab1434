//! The widths by name.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// How wide the solver's vectors are: it changes the speed and never an answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Width {
    /// Plain words: any machine. Compilers make vectors of some of it; there is none written for NEON yet.
    Portable,
    /// 128 bits: every `x86_64`.
    Sse2,
    /// 256 bits: with AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// 512 bits: with AVX-512 F, BW, CD, DQ, VL, VBMI, VBMI2, BITALG and VPOPCNTDQ (Ice Lake, Zen 4 and later).
    Avx512,
}

impl Width {
    /// All widths, narrowest first.
    pub const ALL: [Width; 4] = [Width::Portable, Width::Sse2, Width::Avx2, Width::Avx512];

    /// The widest that this machine has.
    #[must_use]
    pub fn widest() -> Width {
        Width::ALL.into_iter().rev().find(|width| width.is_available()).unwrap_or(Width::Portable)
    }

    /// Whether this machine has the instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Width::Portable => true,
            Width::Sse2 => cfg!(target_arch = "x86_64"),
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => super::Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => super::Avx512::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Width::Avx2 | Width::Avx512 => false,
        }
    }

    /// The name, as it is given on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Width::Portable => "portable",
            Width::Sse2 => "sse2",
            Width::Avx2 => "avx2",
            Width::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no width's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownWidth(String);

impl fmt::Display for UnknownWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no width: portable, sse2, avx2 or avx512", self.0)
    }
}

impl Error for UnknownWidth {}

impl FromStr for Width {
    type Err = UnknownWidth;

    fn from_str(name: &str) -> Result<Width, UnknownWidth> {
        Width::ALL.into_iter().find(|width| width.name() == name).ok_or_else(|| UnknownWidth(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_widths_are_each_others_inverse() {
        for width in Width::ALL {
            assert_eq!(width.name().parse(), Ok(width));
        }
        let refusal = "avx3".parse::<Width>().unwrap_err();
        assert_eq!(refusal.to_string(), "'avx3' is no width: portable, sse2, avx2 or avx512");
    }

    #[test]
    fn the_widest_is_available_and_nothing_wider_is() {
        assert!(Width::widest().is_available());
        assert!(Width::ALL.into_iter().all(|width| width <= Width::widest() || !width.is_available()));
    }
}
