//! The geometry of the grid: which row, column and box each cell is in.

use crate::grid::CELLS;

/// Digits 1 to 9 as bits 0 to 8.
pub(crate) const ALL_DIGITS: u16 = 0b1_1111_1111;

/// Houses of a grid: nine rows, nine columns, nine boxes, in this order.
pub(crate) const HOUSE_COUNT: usize = 27;

/// The nine cells of each house.
pub(crate) const HOUSES: [[usize; 9]; HOUSE_COUNT] = houses();

/// Row of a cell, 0..9.
pub(crate) const fn row_of(cell: usize) -> usize {
    cell / 9
}

/// Column of a cell, 0..9.
pub(crate) const fn column_of(cell: usize) -> usize {
    cell % 9
}

/// Box of a cell, 0..9, row-major.
pub(crate) const fn box_of(cell: usize) -> usize {
    cell / 27 * 3 + cell % 9 / 3
}

/// Whether two different cells share a house.
pub(crate) const fn are_peers(a: usize, b: usize) -> bool {
    a != b && (row_of(a) == row_of(b) || column_of(a) == column_of(b) || box_of(a) == box_of(b))
}

const fn houses() -> [[usize; 9]; HOUSE_COUNT] {
    let mut houses = [[0; 9]; HOUSE_COUNT];
    let mut filled = [0; HOUSE_COUNT];
    let mut cell = 0;
    while cell < CELLS {
        let of_cell = [row_of(cell), 9 + column_of(cell), 18 + box_of(cell)];
        let mut i = 0;
        while i < 3 {
            let house = of_cell[i];
            houses[house][filled[house]] = cell;
            filled[house] += 1;
            i += 1;
        }
        cell += 1;
    }
    houses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_stands_in_three_houses_and_sees_twenty_cells() {
        for cell in 0..CELLS {
            assert_eq!(HOUSES.iter().filter(|house| house.contains(&cell)).count(), 3);
            assert_eq!((0..CELLS).filter(|&other| are_peers(cell, other)).count(), 20);
        }
        assert_eq!(HOUSES[0], [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(HOUSES[9], [0, 9, 18, 27, 36, 45, 54, 63, 72]);
        assert_eq!(HOUSES[26], [60, 61, 62, 69, 70, 71, 78, 79, 80]);
    }
}
