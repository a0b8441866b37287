// A C++ program, with pedantic warnings.
// cabi: ranks=2 transports=shm flags=-std=c++17,-pedantic,-Wextra
#include <mpi.h>

#include <iostream>
#include <numeric>
#include <vector>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int rank, size;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	std::vector<double> mine(100, rank + 1.0), sum(100);
	MPI_Allreduce(mine.data(), sum.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	double want = 100.0 * size * (size + 1) / 2, got = std::accumulate(sum.begin(), sum.end(), 0.0);
	if (got != want) {
		std::cerr << "the sum is " << got << ", want " << want << std::endl;
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (rank == 0)
		std::cout << "ok" << std::endl;
	MPI_Finalize();
}
