//! How the elements of a source tensor lie in the tensor netkit keeps.
//!
//! Sources order a map NCHW, netkit orders it NHWC, and between the two stand `Transpose`, `Reshape`,
//! `Flatten` and their kin, which move no arithmetic, only indices. A [`View`] records what they amount
//! to: each axis of the source tensor is a list of [`Run`]s through the stored elements. Layout
//! operators then change the view and nothing else, and whoever reads a tensor — a dense layer after a
//! flatten, say — asks the view where each element is.

/// `size` steps through the stored elements, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of steps, at least 2.
    pub(crate) size: usize,
    /// Stored elements from one step to the next.
    pub(crate) stride: usize,
}

/// A bijection from the indices of a source tensor to the elements of a stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The axes of the source tensor, outermost first; the runs of an axis outermost first, neighbours
    /// that form one run merged. An axis of size 1 has none.
    axes: Vec<Vec<Run>>,
}

impl View {
    /// A tensor stored in its own row-major order. The product of `dims` must fit `usize`.
    pub(crate) fn contiguous(dims: &[usize]) -> Self {
        let mut stride = 1;
        let mut axes = Vec::with_capacity(dims.len());
        for &size in dims.iter().rev() {
            axes.push(if size > 1 { vec![Run { size, stride }] } else { Vec::new() });
            stride *= size;
        }
        axes.reverse();
        Self { axes }
    }

    /// A `[1, channels, height, width]` tensor stored as `height × width × channels`.
    pub(crate) fn nchw(height: usize, width: usize, channels: usize) -> Self {
        Self::contiguous(&[1, height, width, channels])
            .transpose(&[0, 3, 1, 2])
            .unwrap_or_else(|| Self { axes: Vec::new() })
    }

    /// A tensor with one axis that walks the stored elements by `runs`.
    pub(crate) fn from_runs(runs: Vec<Run>) -> Self {
        Self { axes: vec![merged(runs)] }
    }

    /// The axes, each a list of runs.
    pub(crate) fn axes(&self) -> &[Vec<Run>] {
        &self.axes
    }

    /// The source tensor's shape.
    pub(crate) fn dims(&self) -> Vec<usize> {
        self.axes.iter().map(|runs| runs.iter().map(|run| run.size).product()).collect()
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.axes.iter().flatten().map(|run| run.size).product()
    }

    /// Whether source order and stored order are the same.
    pub(crate) fn is_contiguous(&self) -> bool {
        match self.runs().as_slice() {
            [] => true,
            [run] => run.stride == 1,
            _ => false,
        }
    }

    /// Axis `i` of the result is axis `perm[i]` of this one; `None` unless `perm` is a permutation.
    pub(crate) fn transpose(&self, perm: &[usize]) -> Option<Self> {
        let mut seen = vec![false; self.axes.len()];
        if perm.len() != seen.len() {
            return None;
        }
        let mut axes = Vec::with_capacity(perm.len());
        for &from in perm {
            if std::mem::replace(seen.get_mut(from)?, true) {
                return None;
            }
            axes.push(self.axes[from].clone());
        }
        Some(Self { axes })
    }

    /// The same elements in the same source order under another shape; `None` if the counts differ or
    /// an axis of the result would have to walk the stored elements irregularly.
    pub(crate) fn reshape(&self, dims: &[usize]) -> Option<Self> {
        let mut runs = self.runs().into_iter();
        let mut rest: Option<Run> = None;
        let mut axes = Vec::with_capacity(dims.len());
        for &size in dims {
            let mut axis = Vec::new();
            let mut missing = size;
            while missing > 1 {
                let run = rest.take().or_else(|| runs.next())?;
                if missing.is_multiple_of(run.size) {
                    axis.push(run);
                    missing /= run.size;
                } else if run.size.is_multiple_of(missing) {
                    let inner = run.size / missing;
                    axis.push(Run { size: missing, stride: run.stride * inner });
                    rest = Some(Run { size: inner, stride: run.stride });
                    missing = 1;
                } else {
                    return None;
                }
            }
            if missing == 0 {
                return None;
            }
            axes.push(merged(axis));
        }
        (rest.is_none() && runs.next().is_none()).then_some(Self { axes })
    }

    /// Where each element is stored, in source order.
    pub(crate) fn offsets(&self) -> Vec<usize> {
        let mut offsets = vec![0];
        for run in self.runs() {
            offsets = offsets
                .into_iter()
                .flat_map(|base| (0..run.size).map(move |step| base + step * run.stride))
                .collect();
        }
        offsets
    }

    /// All runs in source order, merged across axes.
    fn runs(&self) -> Vec<Run> {
        merged(self.axes.iter().flatten().copied().collect())
    }
}

/// Joins neighbours that are one run: the outer steps exactly over the inner.
fn merged(runs: Vec<Run>) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(outer) if outer.stride == run.size * run.stride => {
                *outer = Run { size: outer.size * run.size, stride: run.stride };
            }
            _ => joined.push(run),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_channel_first_from_channel_last() {
        // 2×3 pixels of 2 channels, stored HWC: element (h, w, c) is at 6h + 2w + c.
        let view = View::nchw(2, 3, 2);
        assert_eq!(view.dims(), [1, 2, 2, 3]);
        assert_eq!(view.offsets(), [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]);
        assert!(!view.is_contiguous());
    }

    #[test]
    fn flattening_keeps_the_permutation_and_transposing_first_undoes_it() {
        let view = View::nchw(2, 3, 2);
        let flat = view.reshape(&[1, 12]).unwrap();
        assert_eq!(flat.dims(), [1, 12]);
        assert_eq!(flat.offsets(), view.offsets());
        let nhwc = view.transpose(&[0, 2, 3, 1]).unwrap().reshape(&[1, 12]).unwrap();
        assert!(nhwc.is_contiguous());
        assert_eq!(nhwc, View::contiguous(&[1, 12]));
    }

    #[test]
    fn one_channel_or_one_pixel_needs_no_permutation() {
        assert!(View::nchw(5, 7, 1).is_contiguous());
        assert!(View::nchw(1, 1, 9).is_contiguous());
        assert_eq!(View::nchw(1, 1, 9).dims(), [1, 9, 1, 1]);
    }

    #[test]
    fn reshapes_split_and_join_axes() {
        let view = View::contiguous(&[4, 6]);
        assert_eq!(view.reshape(&[2, 2, 3, 2]).unwrap(), View::contiguous(&[2, 2, 3, 2]));
        // 6×4 is no regular walk through the transposed 4×6 unless it is split at a common factor.
        let turned = view.transpose(&[1, 0]).unwrap();
        assert_eq!(turned.reshape(&[2, 3, 4]).unwrap().offsets(), turned.offsets());
        assert_eq!(turned.reshape(&[4, 6]), None);
        assert_eq!(view.reshape(&[5, 5]), None);
        assert_eq!(view.reshape(&[4, 3]), None);
        assert_eq!(view.reshape(&[4, 6, 2]), None);
        assert_eq!(view.reshape(&[0]), None);
    }

    #[test]
    fn scalars_have_one_element() {
        let scalar = View::contiguous(&[]);
        assert_eq!(scalar.offsets(), [0]);
        assert_eq!(scalar.elements(), 1);
        assert!(scalar.is_contiguous());
        assert_eq!(scalar.reshape(&[1, 1]).unwrap().dims(), [1, 1]);
    }

    #[test]
    fn only_permutations_transpose() {
        let view = View::contiguous(&[2, 3]);
        assert_eq!(view.transpose(&[0, 0]), None);
        assert_eq!(view.transpose(&[0, 2]), None);
        assert_eq!(view.transpose(&[1]), None);
        assert_eq!(view.transpose(&[1, 0]).unwrap().dims(), [3, 2]);
    }
}
