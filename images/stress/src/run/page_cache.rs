//! Page cache that counts in the working set.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::disk::write;
use super::folder::Folder;
use super::noise::{BLOCK, Noise};
use super::take::Taker;

/// How often what was written is read: a page that is used again becomes active, and the kubelet counts only inactive pages as free.
const READS: usize = 2;

/// A file that grows, and is read.
pub struct PageCache {
    folder: Folder,
    file: File,
    noise: Noise,
    block: Vec<u8>,
}

impl PageCache {
    pub fn new(path: &str) -> io::Result<Self> {
        let folder = Folder::make(path, "page-cache")?;
        let file = folder.file("file")?;
        Ok(Self { folder, file, noise: Noise::new(), block: vec![0; BLOCK] })
    }
}

impl Taker for PageCache {
    fn take(&mut self, amount: u64, taken: &mut u64) -> io::Result<()> {
        let before = *taken;
        write(&mut self.file, &mut self.noise, &mut self.block, amount, taken)?;
        // Dirty pages would be neither here nor there.
        self.file.sync_data()?;
        for _ in 0..READS {
            let mut at = before;
            while at < *taken {
                let got = self.file.read_at(&mut self.block, at)?;
                if got == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                at += got as u64;
            }
        }
        Ok(())
    }

    fn give_back(self: Box<Self>) -> io::Result<()> {
        drop(self.file);
        self.folder.remove()
    }
}
