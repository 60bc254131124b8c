//! The options of `uturn migrate`.

use clap::Args;

use super::WhatIf;
use crate::completion;

#[derive(Args, Debug)]
pub(crate) struct Migrate {
    /// The migration; without it, all are listed
    #[arg(value_name = "PRESET", add = completion::preset())]
    pub(crate) preset: Option<String>,
    /// Change this object only, such as svc/shop/front; may be repeated
    #[arg(long, value_name = "KIND/NS/NAME", requires = "preset")]
    pub(crate) only: Vec<String>,
    /// Print the page of the preset instead of trying it
    #[arg(long, requires = "preset")]
    pub(crate) page: bool,
    #[command(flatten)]
    pub(crate) whatif: WhatIf,
}
