//! `openlink keys`: makes a key file, shows its public half, adds peers to it.
//!
//! Both ends make a file each and trust the other's public half; `prrt://…?keys=/path` then encrypts with it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use link::key_file;
use prrt::PublicKey;

use crate::out;

/// Command line of `openlink keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

/// What to do with a key file.
#[derive(Debug, Subcommand)]
enum Action {
    /// Make a file with a new secret key and print its public half.
    New {
        /// The file; one that exists is left alone.
        file: PathBuf,
    },
    /// Print the public half and the peers.
    Show {
        /// The file.
        file: PathBuf,
    },
    /// Add the public key of a peer.
    Trust {
        /// The file.
        file: PathBuf,
        /// 64 hexadecimal digits, as `new` and `show` print them.
        public_key: String,
    },
}

/// Does it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::New { file } => out::line(key_file::create(&file)?),
        Action::Show { file } => {
            let keys = key_file::read_own(&file)?;
            out::line(keys.secret.public());
            for peer in &keys.peers {
                out::line(format_args!("peer {peer}"));
            }
        }
        Action::Trust { file, public_key } => {
            let peer: PublicKey = public_key.parse()?;
            key_file::trust(&file, peer)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
