//! Limits on the size of a page: at most about 5 MB, which a browser opens in a second.

/// The largest number of bytes of all findings that are shown in full, without their pictures.
pub(super) const MAX_IN_FULL: usize = 1_400_000;
/// The largest number of bytes of all pictures.
pub(super) const MAX_PICTURES: usize = 1_200_000;
/// The largest number of bytes of all rows: the findings of a group after its worst.
pub(super) const MAX_ROWS: usize = 2_200_000;

/// Divides `total` among parts of these sizes and returns the largest size of a part: small parts
/// are whole, large ones are cut to this size.
pub(super) fn share_out(sizes: &[usize], total: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = total;
    for (index, size) in sorted.iter().enumerate() {
        let each = left / (sorted.len() - index);
        if *size > each {
            return each;
        }
        left -= size;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_whole_and_large_ones_are_cut_alike() {
        assert_eq!(share_out(&[1, 2, 3], 6), usize::MAX);
        assert_eq!(share_out(&[], 6), usize::MAX);
        assert_eq!(share_out(&[10, 1, 10], 11), 5);
        assert_eq!(share_out(&[10, 10], 0), 0);
    }
}
