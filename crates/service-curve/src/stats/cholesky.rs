//! Least squares on a matrix whose leading columns are regressions of their own.
//!
//! One Cholesky factorisation of the Gram matrix of all columns gives the residuals of the
//! regressions on the first 1, 2, 3 … of them, which is what choosing a lag needs; a general linear
//! algebra library would factorise each of them anew.

/// A column whose part orthogonal to the columns before it is smaller than this fraction of its
/// square counts as dependent on them. Rounding leaves about 1e-16 times the number of rows.
const DEPENDENT: f64 = 1e-12;

/// The factor of XᵀX, and Xᵀy in its coordinates.
pub(crate) struct Factor {
    /// Lower triangle by rows, as long as the columns are independent.
    lower: Vec<Vec<f64>>,
    /// L⁻¹ Xᵀy.
    projected: Vec<f64>,
    /// yᵀy.
    total: f64,
}

impl Factor {
    /// Factorises as many leading columns as are independent; `columns` all have the length of `y`.
    pub(crate) fn new(columns: &[&[f64]], y: &[f64]) -> Self {
        let total = dot(y, y);
        let mut lower: Vec<Vec<f64>> = Vec::with_capacity(columns.len());
        let mut projected: Vec<f64> = Vec::with_capacity(columns.len());
        for (i, column) in columns.iter().enumerate() {
            let mut row = Vec::with_capacity(i + 1);
            for (j, earlier) in lower.iter().enumerate() {
                let product = dot(column, columns[j]) - dot(&row, &earlier[..j]);
                row.push(product / earlier[j]);
            }
            let square = dot(column, column);
            let pivot = square - dot(&row, &row);
            if pivot <= square * DEPENDENT || pivot < f64::MIN_POSITIVE {
                break;
            }
            let pivot = pivot.sqrt();
            projected.push((dot(column, y) - dot(&row, &projected)) / pivot);
            row.push(pivot);
            lower.push(row);
        }
        Self { lower, projected, total }
    }

    /// How many leading columns are independent.
    pub(crate) fn rank(&self) -> usize {
        self.lower.len()
    }

    /// Sums of squared residuals of the regressions on the first 1, 2, … columns.
    pub(crate) fn residuals(&self) -> Vec<f64> {
        self.projected
            .iter()
            .scan(self.total, |rest, q| {
                *rest -= q * q;
                Some(rest.max(0.0))
            })
            .collect()
    }

    /// The part of y explained by each column beyond those before it, in units of y.
    pub(crate) fn projected(&self) -> &[f64] {
        &self.projected
    }

    /// The coefficients of the regression on all independent columns.
    pub(crate) fn coefficients(&self) -> Vec<f64> {
        let mut solution = self.projected.clone();
        for i in (0..solution.len()).rev() {
            let rest: f64 = (i + 1..solution.len()).map(|j| self.lower[j][i] * solution[j]).sum();
            solution[i] = (solution[i] - rest) / self.lower[i][i];
        }
        solution
    }

    /// The first diagonal element of (XᵀX)⁻¹.
    pub(crate) fn first_inverse_diagonal(&self) -> f64 {
        // L z = e₁; the element is zᵀz.
        let mut z: Vec<f64> = Vec::with_capacity(self.lower.len());
        for (i, row) in self.lower.iter().enumerate() {
            let unit = if i == 0 { 1.0 } else { 0.0 };
            z.push((unit - dot(&row[..i], &z)) / row[i]);
        }
        dot(&z, &z)
    }
}

/// The scalar product over the shorter length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums let the compiler use vector registers; the order is fixed, so the result is the
    // same everywhere.
    let mut sums = [0.0; 4];
    let (a4, a_rest) = a.as_chunks::<4>();
    let (b4, b_rest) = b.as_chunks::<4>();
    for (x, y) in a4.iter().zip(b4) {
        for lane in 0..4 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let whole = a4.len().min(b4.len()) * 4;
    let rest: f64 = if a4.len() == b4.len() {
        a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum()
    } else {
        a[whole..].iter().zip(&b[whole..]).map(|(x, y)| x * y).sum()
    };
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}
