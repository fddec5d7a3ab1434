//! The instruction sets: the only module with `unsafe` code.
//!
//! The kernels of `lanes` and `count` are written once, in safe code, over the small traits of this module, and compiled
//! for each instruction set. What `dense` does for its module is written twice: for AVX-512, which has instructions for
//! it, and in plain code for all others. What keeps that sound:
//!
//! - An [`Isa`] value is the proof that this machine has the instructions: it comes from a run-time check alone.
//! - A vector is made from an [`Isa`] value or from another vector, so where there is a vector there is the proof.
//! - [`Isa::run`] compiles an [`Op`] with the instructions switched on. Everything that an `Op` calls has to be
//!   `#[inline(always)]` or be run by [`Isa::run`] again: a function of its own does not inherit the instructions, and
//!   the same code then runs ten times slower.
//!
//! ```text
//! Width (public, by name) --with--> Isa (proof) --run--> Op::call::<Isa> (compiled for it)
//! ```

mod u16s;
mod width;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dense;
#[cfg(target_arch = "x86_64")]
mod dense_avx512;
mod portable;
pub(crate) mod sets;
#[cfg(target_arch = "x86_64")]
mod sets_avx2;
#[cfg(target_arch = "x86_64")]
mod sets_avx512;
mod sets_plain;
#[cfg(test)]
mod sets_tests;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub use width::{UnknownWidth, Width};

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::Sse2;
pub(crate) use u16s::U16s;

/// Instructions that this machine has.
pub(crate) trait Isa: Copy + sets::StateWords + dense::Dense {
    /// Sets of up to 64 states.
    type Wide: sets::Sets<Isa = Self, Word = u64>;
    /// Sets of fewer states, if more of them fit in a vector.
    type Narrow: sets::Sets<Isa = Self>;

    /// Candidate sets side by side, for the lane solver.
    type U16s: U16s;

    /// The same word in every lane.
    fn splat(self, word: u16) -> Self::U16s;

    /// The first words, one a lane.
    ///
    /// # Panics
    /// If there are fewer words than lanes.
    fn load(self, words: &[u16]) -> Self::U16s;

    /// All bits in the lanes whose bit is set, none in the others.
    fn bits_of_lanes(self, lanes: u32) -> Self::U16s;

    /// Runs the work with these instructions switched on.
    fn run<O: Op>(self, op: O) -> O::Output;
}

/// Marks calls of vector instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    ($call:expr) => {{
        // SAFETY: the instructions need nothing but the machine to have them. The calls are made from methods of an
        // `Isa` value or of a vector, and there is neither without a run-time check that found them.
        unsafe { $call }
    }};
}
#[cfg(target_arch = "x86_64")]
use instructions;

/// Work that is compiled once for each instruction set.
pub(crate) trait Op {
    /// What the work gives.
    type Output;

    /// Does the work; to be `#[inline(always)]`, see the module.
    fn call<I: Isa>(self, isa: I) -> Self::Output;
}

/// Runs the work with the instructions of this width, or with the widest narrower ones that the machine has.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is but one"))]
pub(crate) fn with<O: Op>(width: Width, op: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if width >= Width::Avx512
            && let Some(isa) = Avx512::detect()
        {
            return isa.run(op);
        }
        if width >= Width::Avx2
            && let Some(isa) = Avx2::detect()
        {
            return isa.run(op);
        }
        if width >= Width::Sse2 {
            return Sse2.run(op);
        }
    }
    Portable.run(op)
}
