"""Products of matrices that are in the cache, held in vector registers; compiled by numba.

BLAS packs its operands first, and takes three quarters of the time of any other product for A'A, where half would do.
A loop over tiles, for rows that have just been written to the cache, is more than twice as fast.

A tile of C = A B is a few rows times a few vectors of columns. It stays in registers while the loop runs over the depth
of the product, and each step multiplies the vectors of one row of B by one number of each row of A.

Rows of B and C consist of whole vectors: their number of columns is a multiple of `vector_length`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils, config
from numba.extending import intrinsic


def _registers() -> tuple[int, int]:
    """Bytes of a vector register, and how many rows of a tile three vectors wide fit in all registers."""
    features = (getattr(config, "CPU_FEATURES", None) or binding.get_host_cpu_features().flatten()).split(",")
    if "+avx512f" in features:
        return 64, 8
    if "+avx2" in features:
        return 32, 4
    return 16, 8 if "+neon" in features else 4


WIDTH, ROWS = _registers()
VECTORS = 3
SINGLE_ROWS = 128  # rows whose products are added up in single precision: longer sums round more


def vector_length(dtype: np.dtype) -> int:
    """The count of numbers in a vector register."""
    return WIDTH // dtype.itemsize


def padded(columns: int, dtype: np.dtype) -> int:
    """The number of columns, rounded up to whole vectors."""
    return columns + -columns % vector_length(dtype)


class _Code:
    """Instructions for vectors of numbers."""

    def __init__(self, context, builder, bits):
        self.context, self.builder, self.size, self.length = context, builder, bits // 8, 8 * WIDTH // bits
        self.number = ir.DoubleType() if bits == 64 else ir.FloatType()
        self.vector, self.integer = ir.VectorType(self.number, self.length), ir.IntType(64)
        kind, name = ir.FunctionType(self.vector, [self.vector] * 3), f"llvm.fmuladd.v{self.length}f{bits}"
        self._multiply_add = cgutils.get_or_insert_function(builder.module, kind, name)

    def start_of(self, kind, array, offset):
        """The address of the element of a matrix at an offset, and the elements from one row to the next."""
        array = cgutils.create_struct_proxy(kind)(self.context, self.builder, array)
        stride = cgutils.unpack_tuple(self.builder, array.strides, 2)[0]
        first = self.builder.bitcast(array.data, self.number.as_pointer())
        return self.builder.gep(first, [offset]), self.builder.sdiv(stride, self.integer(self.size))

    def at(self, start, offset, vectors):
        """The address of a vector: so many vectors after an offset."""
        offset = self.builder.add(offset, self.integer(vectors * self.length))
        return self.builder.bitcast(self.builder.gep(start, [offset]), self.vector.as_pointer())

    def load(self, place):
        return self.builder.load(place, align=self.size)

    def repeated(self, place):
        """The number at an address in every element of a vector."""
        any_vector, first = ir.Constant(self.vector, ir.Undefined), ir.IntType(32)(0)
        one = self.builder.insert_element(any_vector, self.builder.load(place), first)
        return self.builder.shuffle_vector(
            one, any_vector, ir.Constant(ir.VectorType(ir.IntType(32), self.length), None)
        )

    def add_product(self, total, a, b):
        """total += a b."""
        value = self.builder.call(self._multiply_add, [a, b, self.builder.load(total)])
        self.builder.store(value, total)


def _write_tile(code, C, C_row, A, A_rows, A_column, B, B_row, depth, vectors):
    """Sum up a tile, and write it to C; `C_row` and `A_rows` are offsets of its rows."""
    build, none = code.builder, ir.Constant(code.vector, None)
    sums = [[cgutils.alloca_once(build, code.vector) for _ in range(vectors)] for _ in A_rows]
    for total in (total for row in sums for total in row):
        build.store(none, total)
    with cgutils.for_range(build, depth) as step:
        B_step, A_step = build.mul(step.index, B_row), build.mul(step.index, A_column)
        columns = [code.load(code.at(B, B_step, v)) for v in range(vectors)]
        for row, A_offset in zip(sums, A_rows, strict=True):
            factor = code.repeated(build.gep(A, [build.add(A_step, A_offset)]))
            for total, column in zip(row, columns, strict=True):
                code.add_product(total, factor, column)
    for row, offset in zip(sums, C_row, strict=True):
        for v, total in enumerate(row):
            build.store(build.load(total), code.at(C, offset, v), align=code.size)


def _tile_of(vectors):
    """A compiled function that writes a tile of so many vectors."""

    @intrinsic
    def tile(typing, C, c, A, a, A_row, A_column, B, b, depth, rows):
        """Write rows of a tile of C = A B, which starts at elements c, a and b of the arrays.

        A has strides `A_row` and `A_column`. Beyond the number of `rows`, the last one is written again.
        """

        def build(context, builder, signature, values):
            C_array, c, A_array, a, A_row, A_column, B_array, b, depth, rows = values
            code = _Code(context, builder, C.dtype.bitwidth)
            C_start, C_row = code.start_of(C, C_array, c)
            A_start, _ = code.start_of(A, A_array, a)
            B_start, B_row = code.start_of(B, B_array, b)
            last = builder.sub(rows, code.integer(1))
            smaller = lambda i: builder.select(builder.icmp_signed("<", code.integer(i), last), code.integer(i), last)
            row = [smaller(i) for i in range(ROWS)]
            C_rows, A_rows = [builder.mul(i, C_row) for i in row], [builder.mul(i, A_row) for i in row]
            _write_tile(code, C_start, C_rows, A_start, A_rows, A_column, B_start, B_row, depth, vectors)
            return context.get_dummy_value()

        size = types.intp
        return types.void(C, size, A, size, size, size, B, size, size, size), build

    return tile


_tile1, _tile2, _tile3 = (_tile_of(vectors) for vectors in range(1, VECTORS + 1))


@njit(nogil=True, inline="always")
def _tiles(A, A_row, A_column, B, C, m, depth, upper):
    """C = A B for m rows of A with the given strides, or only the vectors with elements on or above the diagonal."""
    n, lanes, C_row = C.shape[1], WIDTH // C.itemsize, C.strides[0] // C.itemsize
    for left in range(0, n, VECTORS * lanes):
        right = min(n, left + VECTORS * lanes)
        end = min(m, right) if upper else m
        for i in range(0, end, ROWS):
            j = max(left, i - i % lanes) if upper else left
            c, a, rows = i * C_row + j, i * A_row, min(ROWS, end - i)
            if right - j == 3 * lanes:
                _tile3(C, c, A, a, A_row, A_column, B, j, depth, rows)
            elif right - j == 2 * lanes:
                _tile2(C, c, A, a, A_row, A_column, B, j, depth, rows)
            else:
                _tile1(C, c, A, a, A_row, A_column, B, j, depth, rows)


@njit(nogil=True, cache=True)
def product(A, B, C):
    """C (m, n) = A (m, k) B (k, n). A may have any strides, B and C have adjacent columns."""
    if B.size and (B.strides[1] != B.itemsize or C.strides[1] != C.itemsize):
        raise ValueError("the columns of B and C must be adjacent")
    _tiles(A, A.strides[0] // A.itemsize, A.strides[1] // A.itemsize, B, C, A.shape[0], A.shape[1], False)


@njit(nogil=True, cache=True)
def gram(A, C):
    """The upper triangle of C (n, n) = A'A; some numbers below the diagonal are left as they were."""
    _tiles(A, 1, A.strides[0] // A.itemsize, A, C, A.shape[1], A.shape[0], True)


@njit(nogil=True, cache=True)
def add_gram(A, C, total):
    """Add A'A to the upper triangle of `total`, in double precision, some rows at a time; C (n, n) is overwritten."""
    rows = SINGLE_ROWS if A.itemsize == 4 else max(1, len(A))
    for first in range(0, len(A), rows):
        gram(A[first : first + rows], C)
        for i in range(len(total)):
            for j in range(i, len(total)):
                total[i, j] += C[i, j]


@njit(nogil=True, cache=True)
def add_few(T, A, total):
    """Add T'A to `total` (t, n), in double precision, for T (m, t) of so few columns that tiles would be empty."""
    for i in range(len(A)):
        for p in range(T.shape[1]):
            factor = np.float64(T[i, p])
            for j in range(total.shape[1]):
                total[p, j] += factor * A[i, j]
