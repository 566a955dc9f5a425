//! Numbers of the drone: one type for the values of log variables and parameters, with their bytes.

use std::fmt;

use arrayvec::ArrayVec;
use half::f16;

/// The most bytes a value has.
pub const MAX_VALUE: usize = 8;

macro_rules! values {
    ($($(#[$meta:meta])* $variant:ident($ty:ty) $name:literal,)*) => {
        /// A number's type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$meta])* $variant,)*
        }

        impl Kind {
            /// Bytes of a value.
            #[must_use]
            pub const fn size(self) -> usize {
                match self { $(Self::$variant => size_of::<$ty>(),)* }
            }

            /// The type's name, as cflib writes it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The type of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }

        /// A number as the drone has it.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Value {
            $($(#[$meta])* $variant($ty),)*
        }

        impl Value {
            /// Its type.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$variant(_) => Kind::$variant,)* }
            }

            /// The value at the head of `bytes`, and the bytes behind it; `None` if there are too few.
            #[must_use]
            pub fn take(kind: Kind, bytes: &[u8]) -> Option<(Self, &[u8])> {
                match kind {
                    $(Kind::$variant => {
                        let (head, rest) = bytes.split_first_chunk()?;
                        Some((Self::$variant(<$ty>::from_le_bytes(*head)), rest))
                    })*
                }
            }

            /// Its bytes.
            #[must_use]
            pub fn to_bytes(&self) -> ArrayVec<u8, MAX_VALUE> {
                match self {
                    $(Self::$variant(value) => value.to_le_bytes().into_iter().collect(),)*
                }
            }
        }

        impl fmt::Display for Value {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant(value) => value.fmt(f),)* }
            }
        }
    };
}

values! {
    /// 8 bits, signed.
    I8(i8) "int8_t",
    /// 16 bits, signed.
    I16(i16) "int16_t",
    /// 32 bits, signed.
    I32(i32) "int32_t",
    /// 64 bits, signed.
    I64(i64) "int64_t",
    /// 8 bits.
    U8(u8) "uint8_t",
    /// 16 bits.
    U16(u16) "uint16_t",
    /// 32 bits.
    U32(u32) "uint32_t",
    /// 64 bits.
    U64(u64) "uint64_t",
    /// 16-bit float.
    F16(f16) "FP16",
    /// 32-bit float.
    F32(f32) "float",
    /// 64-bit float.
    F64(f64) "double",
}

impl Kind {
    /// Whether its values are whole numbers.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// Smallest and largest value of an integer type; `None` for floats.
    #[must_use]
    pub const fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::I8 => (i8::MIN as i128, i8::MAX as i128),
            Self::I16 => (i16::MIN as i128, i16::MAX as i128),
            Self::I32 => (i32::MIN as i128, i32::MAX as i128),
            Self::I64 => (i64::MIN as i128, i64::MAX as i128),
            Self::U8 => (0, u8::MAX as i128),
            Self::U16 => (0, u16::MAX as i128),
            Self::U32 => (0, u32::MAX as i128),
            Self::U64 => (0, u64::MAX as i128),
            Self::F16 | Self::F32 | Self::F64 => return None,
        })
    }
}

impl Value {
    /// A whole number as this type; `None` if it does not fit. Floats take it rounded.
    #[must_use]
    pub fn from_integer(kind: Kind, value: i64) -> Option<Self> {
        Some(match kind {
            Kind::I8 => Self::I8(value.try_into().ok()?),
            Kind::I16 => Self::I16(value.try_into().ok()?),
            Kind::I32 => Self::I32(value.try_into().ok()?),
            Kind::I64 => Self::I64(value),
            Kind::U8 => Self::U8(value.try_into().ok()?),
            Kind::U16 => Self::U16(value.try_into().ok()?),
            Kind::U32 => Self::U32(value.try_into().ok()?),
            Kind::U64 => Self::U64(value.try_into().ok()?),
            Kind::F16 | Kind::F32 | Kind::F64 => return Self::from_float(kind, value as f64),
        })
    }

    /// A float as this type; `None` for NaN, for what overflows, and for fractions where the type is whole.
    #[must_use]
    pub fn from_float(kind: Kind, value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        match kind {
            Kind::F64 => Some(Self::F64(value)),
            Kind::F32 => Some(value as f32).filter(|v| v.is_finite()).map(Self::F32),
            Kind::F16 => Some(f16::from_f64(value))
                .filter(|v| v.is_finite())
                .map(Self::F16),
            // Both bounds are exact in a double; the upper one is the first that no longer fits.
            _ if value.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&value) => {
                Self::from_integer(kind, value as i64)
            }
            _ => None,
        }
    }

    /// The value as a double; 64-bit integers beyond 2⁵³ are rounded.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        match *self {
            Self::I8(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::I64(v) => v as f64,
            Self::U8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::U64(v) => v as f64,
            Self::F16(v) => v.into(),
            Self::F32(v) => v.into(),
            Self::F64(v) => v,
        }
    }

    /// The value as a whole number; `None` for floats and for what exceeds 64 signed bits.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        match *self {
            Self::I8(v) => Some(v.into()),
            Self::I16(v) => Some(v.into()),
            Self::I32(v) => Some(v.into()),
            Self::I64(v) => Some(v),
            Self::U8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::U64(v) => v.try_into().ok(),
            Self::F16(_) | Self::F32(_) | Self::F64(_) => None,
        }
    }
}
