!     Messages from fixed source form with mpif.h: a ring, statuses,
!     indices of completed requests, packed data, buffered sends.
      program f77_messages
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, left, right, i, n, index, outcount
      integer value, got, st(MPI_STATUS_SIZE)
      integer sts(MPI_STATUS_SIZE,4), reqs(4), indices(4), pos
      logical flag
      integer small(4), box(4)
      integer many(100), mreqs(100), msts(MPI_STATUS_SIZE,100)
      double precision x(10), y(10)
      character*40 packed
      character attached(4096+4*MPI_BSEND_OVERHEAD)
      double precision began

      call MPI_INIT(ierr)
      began = MPI_WTIME()
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      call check(ierr .eq. MPI_SUCCESS, 'size')
      left = mod(rank + size - 1, size)
      right = mod(rank + 1, size)

!     a token once around
      value = 7
      if (rank .eq. 0 .and. size .gt. 1) then
        call MPI_SEND(value, 1, MPI_INTEGER, right, 5, MPI_COMM_WORLD,
     &    ierr)
        call MPI_RECV(got, 1, MPI_INTEGER, left, 5, MPI_COMM_WORLD,
     &    st, ierr)
        call check(got .eq. 7 + size - 1, 'token')
        call check(st(MPI_SOURCE) .eq. left, 'source of the token')
        call check(st(MPI_TAG) .eq. 5, 'tag of the token')
        call MPI_GET_COUNT(st, MPI_INTEGER, n, ierr)
        call check(n .eq. 1, 'count of the token')
      else if (size .gt. 1) then
        call MPI_RECV(got, 1, MPI_INTEGER, left, MPI_ANY_TAG,
     &    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        got = got + 1
        call MPI_SEND(got, 1, MPI_INTEGER, right, 5, MPI_COMM_WORLD,
     &    ierr)
      end if

!     both ways at once
      do i = 1, 10
        x(i) = rank + i * 0.5d0
        y(i) = -1
      end do
      call MPI_SENDRECV(x, 10, MPI_DOUBLE_PRECISION, right, 6, y, 10,
     &  MPI_DOUBLE_PRECISION, left, 6, MPI_COMM_WORLD, st, ierr)
      do i = 1, 10
        call check(y(i) .eq. left + i * 0.5d0, 'sendrecv')
      end do
      call MPI_GET_COUNT(st, MPI_DOUBLE_PRECISION, n, ierr)
      call check(n .eq. 10, 'count of sendrecv')

!     indices count from one, and MPI_UNDEFINED stays; with a barrier
!     before each send only one request is complete at a time
      do i = 1, 4
        box(i) = 0
        small(i) = 10 * rank + i
        call MPI_IRECV(box(i), 1, MPI_INTEGER, left, 100 + i,
     &    MPI_COMM_WORLD, reqs(i), ierr)
      end do
      call MPI_SEND(small(3), 1, MPI_INTEGER, right, 103,
     &  MPI_COMM_WORLD, ierr)
      call MPI_WAITANY(4, reqs, index, st, ierr)
      call check(index .eq. 3, 'waitany index')
      call check(reqs(3) .eq. MPI_REQUEST_NULL, 'waitany request')
      call check(reqs(2) .ne. MPI_REQUEST_NULL, 'waitany others')
      call check(st(MPI_TAG) .eq. 103, 'waitany tag')
      call check(box(3) .eq. 10 * left + 3, 'waitany value')
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      call MPI_SEND(small(1), 1, MPI_INTEGER, right, 101,
     &  MPI_COMM_WORLD, ierr)
      call MPI_WAITSOME(4, reqs, outcount, indices, sts, ierr)
      call check(outcount .eq. 1, 'waitsome count')
      call check(indices(1) .eq. 1, 'waitsome index')
      call check(sts(MPI_TAG,1) .eq. 101, 'waitsome tag')
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      call MPI_SEND(small(4), 1, MPI_INTEGER, right, 104,
     &  MPI_COMM_WORLD, ierr)
      outcount = 0
      do while (outcount .eq. 0)
        call MPI_TESTSOME(4, reqs, outcount, indices,
     &    MPI_STATUSES_IGNORE, ierr)
      end do
      call check(outcount .eq. 1, 'testsome count')
      call check(indices(1) .eq. 4, 'testsome index')
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      call MPI_SEND(small(2), 1, MPI_INTEGER, right, 102,
     &  MPI_COMM_WORLD, ierr)
      flag = .false.
      do while (.not. flag)
        call MPI_TESTANY(4, reqs, index, flag, st, ierr)
      end do
      call check(index .eq. 2, 'testany index')
      call MPI_TESTANY(4, reqs, index, flag, st, ierr)
      call check(flag .and. index .eq. MPI_UNDEFINED, 'testany none')
      call MPI_WAITSOME(4, reqs, outcount, indices, sts, ierr)
      call check(outcount .eq. MPI_UNDEFINED, 'waitsome none')

!     all at once, statuses in order
      do i = 1, 4
        call MPI_IRECV(box(i), 1, MPI_INTEGER, left, 200 + i,
     &    MPI_COMM_WORLD, reqs(i), ierr)
      end do
      do i = 4, 1, -1
        call MPI_SEND(small(i), 1, MPI_INTEGER, right, 200 + i,
     &    MPI_COMM_WORLD, ierr)
      end do
      call MPI_WAITALL(4, reqs, sts, ierr)
      do i = 1, 4
        call check(sts(MPI_TAG,i) .eq. 200 + i, 'waitall tag')
        call check(sts(MPI_SOURCE,i) .eq. left, 'waitall source')
        call check(box(i) .eq. 10 * left + i, 'waitall value')
        call check(reqs(i) .eq. MPI_REQUEST_NULL, 'waitall request')
      end do

!     more requests than the library keeps on its stack
      do i = 1, 100
        call MPI_IRECV(many(i), 1, MPI_INTEGER, left, 1000 + i,
     &    MPI_COMM_WORLD, mreqs(i), ierr)
      end do
      do i = 100, 1, -1
        value = 3 * i + rank
        call MPI_SEND(value, 1, MPI_INTEGER, right, 1000 + i,
     &    MPI_COMM_WORLD, ierr)
      end do
      call MPI_WAITALL(100, mreqs, msts, ierr)
      do i = 1, 100
        call check(many(i) .eq. 3 * i + left, 'many values')
        call check(msts(MPI_TAG,i) .eq. 1000 + i, 'many tags')
        call check(mreqs(i) .eq. MPI_REQUEST_NULL, 'many requests')
      end do

!     persistent requests
      call MPI_SEND_INIT(small, 4, MPI_INTEGER, right, 7,
     &  MPI_COMM_WORLD, reqs(1), ierr)
      call MPI_RECV_INIT(box, 4, MPI_INTEGER, left, 7,
     &  MPI_COMM_WORLD, reqs(2), ierr)
      do n = 1, 3
        small(1) = n + rank
        call MPI_STARTALL(2, reqs, ierr)
        call MPI_WAITALL(2, reqs, MPI_STATUSES_IGNORE, ierr)
        call check(box(1) .eq. n + left, 'persistent value')
        call check(reqs(1) .ne. MPI_REQUEST_NULL, 'persistent stays')
      end do
      call MPI_REQUEST_FREE(reqs(1), ierr)
      call MPI_REQUEST_FREE(reqs(2), ierr)
      call check(reqs(2) .eq. MPI_REQUEST_NULL, 'request free')

!     packed
      pos = 0
      call MPI_PACK(rank, 1, MPI_INTEGER, packed, 40, pos,
     &  MPI_COMM_WORLD, ierr)
      call MPI_PACK(x, 2, MPI_DOUBLE_PRECISION, packed, 40, pos,
     &  MPI_COMM_WORLD, ierr)
      call check(pos .eq. 20, 'packed size')
      call MPI_SENDRECV_REPLACE(packed, pos, MPI_PACKED, right, 8,
     &  left, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      pos = 0
      call MPI_UNPACK(packed, 40, pos, got, 1, MPI_INTEGER,
     &  MPI_COMM_WORLD, ierr)
      call MPI_UNPACK(packed, 40, pos, y, 2, MPI_DOUBLE_PRECISION,
     &  MPI_COMM_WORLD, ierr)
      call check(got .eq. left .and. y(2) .eq. left + 1d0, 'unpacked')

!     probed
      call MPI_ISEND(x, 3, MPI_DOUBLE_PRECISION, right, 9,
     &  MPI_COMM_WORLD, reqs(1), ierr)
      call MPI_PROBE(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, st, ierr)
      call MPI_GET_COUNT(st, MPI_DOUBLE_PRECISION, n, ierr)
      call check(n .eq. 3 .and. st(MPI_SOURCE) .eq. left, 'probe')
      call MPI_RECV(y, 3, MPI_DOUBLE_PRECISION, left, 9,
     &  MPI_COMM_WORLD, st, ierr)
      call MPI_WAIT(reqs(1), st, ierr)
      call MPI_IPROBE(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, flag, st,
     &  ierr)
      call check(.not. flag, 'iprobe')

!     buffered; MPI_BUFFER_DETACH leaves its first argument alone here
      call MPI_BUFFER_ATTACH(attached, 4096 + 4*MPI_BSEND_OVERHEAD,
     &  ierr)
      call MPI_BSEND(x, 10, MPI_DOUBLE_PRECISION, right, 10,
     &  MPI_COMM_WORLD, ierr)
      call MPI_RECV(y, 10, MPI_DOUBLE_PRECISION, left, 10,
     &  MPI_COMM_WORLD, st, ierr)
      call check(y(10) .eq. left + 5d0, 'bsend')
      call MPI_BUFFER_DETACH(attached, n, ierr)
      call check(n .eq. 4096 + 4*MPI_BSEND_OVERHEAD, 'detach')

!     nobody
      call MPI_RECV(got, 1, MPI_INTEGER, MPI_PROC_NULL, 1,
     &  MPI_COMM_WORLD, st, ierr)
      call check(st(MPI_SOURCE) .eq. MPI_PROC_NULL, 'proc null')
      call MPI_GET_COUNT(st, MPI_INTEGER, n, ierr)
      call check(n .eq. 0, 'count of proc null')

      call check(MPI_WTIME() .ge. began, 'wtime')
      call check(MPI_WTICK() .gt. 0d0, 'wtick')
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) print '(A)', 'ok'
      end

      subroutine check(yes, what)
      implicit none
      include 'mpif.h'
      logical yes
      character*(*) what
      integer ierr
      if (.not. yes) then
        print *, 'wrong: ', what
        call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
      end if
      end
