! The usual mistakes in Fortran; see TestMistakes.
program mistakes
  use mpi_f08
  implicit none
  character(32) :: which
  integer :: rank, sizes(2) = 1
  integer :: in(64) = 0, out(64) = 0
  double precision :: real8(64) = 0
  complex :: z(4) = 0
  type(MPI_Comm) :: comm
  type(MPI_Datatype) :: type
  type(MPI_Request) :: request
  type(MPI_Win) :: win
  logical :: periods(2) = .false.

  call get_command_argument(1, which)
  if (which == 'before-init') call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  select case (which)
  case ('rank')
    call MPI_Send(in, 1, MPI_INTEGER, 7, 0, MPI_COMM_WORLD)
  case ('tag')
    call MPI_Send(in, 1, MPI_INTEGER, 0, -3, MPI_COMM_WORLD)
  case ('count')
    call MPI_Send(in, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD)
  case ('unset-comm')
    comm%MPI_VAL = -1 ! what is never set can be anything
    call MPI_Barrier(comm)
  case ('null-type')
    call MPI_Send(in, 4, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD)
  case ('uncommitted')
    call MPI_Type_contiguous(2, MPI_INTEGER, type)
    call MPI_Send(in, 1, type, 0, 0, MPI_COMM_WORLD)
  case ('type')
    if (rank == 0) then
      call MPI_Send(in, 4, MPI_INTEGER, 1, 5, MPI_COMM_WORLD)
    else
      call MPI_Recv(real8, 4, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
  case ('truncated')
    if (rank == 0) then
      call MPI_Send(in, 8, MPI_INTEGER, 1, 5, MPI_COMM_WORLD)
    else
      call MPI_Recv(out, 4, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
  case ('operator')
    call MPI_Allreduce(MPI_IN_PLACE, z, 4, MPI_COMPLEX, MPI_MAX, MPI_COMM_WORLD)
  case ('logical')
    call MPI_Allreduce(MPI_IN_PLACE, in, 4, MPI_INTEGER, MPI_LAND, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, periods, 2, MPI_LOGICAL, MPI_SUM, MPI_COMM_WORLD)
  case ('same-buffer')
    call MPI_Allreduce(in, in, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  case ('cart-size')
    sizes = 2
    call MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, .false., comm)
  case ('window-range')
    call MPI_Win_create(in, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_fence(0, win)
    call MPI_Put(out, 1, MPI_INTEGER, 0, 100_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
  case ('active-request')
    call MPI_Recv_init(in, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, request)
    call MPI_Start(request)
    call MPI_Start(request)
  case ('abort')
    if (rank == 1) call MPI_Abort(MPI_COMM_WORLD, 5)
    call MPI_Barrier(MPI_COMM_WORLD)
  end select
  call MPI_Finalize()
end program
