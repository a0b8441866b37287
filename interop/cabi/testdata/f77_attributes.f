!     Attributes with callbacks of Fortran, in both generations of calls,
!     user operators and error handlers.
      program f77_attributes
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, key, oldkey, comm2, value, handler
      integer code, op, i, class, a(4), b(4)
      integer(kind=MPI_ADDRESS_KIND) extra, val
      logical flag
      integer copies, deletes, errors
      common /counted/ copies, deletes, errors
      external copy, drop, oldcopy, olddrop, product2, onerror

      copies = 0
      deletes = 0
      errors = 0
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)

!     the library's own
      call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, val, flag,
     &  ierr)
      call check(flag .and. val .ge. 32767, 'tag ub')
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
      call check(flag .and. value .ge. 32767, 'tag ub, old')
      call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, val,
     &  flag, ierr)
      call check(.not. flag .or. val .eq. 0 .or. val .eq. 1, 'global')

!     values of 64 bits, extra state, copies and deletes
      extra = 1234567890123_MPI_ADDRESS_KIND
      call MPI_COMM_CREATE_KEYVAL(copy, drop, key, extra, ierr)
      call check(ierr .eq. MPI_SUCCESS, 'create keyval')
      call MPI_COMM_GET_ATTR(MPI_COMM_SELF, key, val, flag, ierr)
      call check(.not. flag, 'no attribute yet')
      val = 9876543210_MPI_ADDRESS_KIND
      call MPI_COMM_SET_ATTR(MPI_COMM_SELF, key, val, ierr)
      val = 0
      call MPI_COMM_GET_ATTR(MPI_COMM_SELF, key, val, flag, ierr)
      call check(flag .and. val .eq. 9876543210_MPI_ADDRESS_KIND,
     &  'attribute')
      call MPI_COMM_DUP(MPI_COMM_SELF, comm2, ierr)
      call check(copies .eq. 1, 'copies')
      call MPI_COMM_GET_ATTR(comm2, key, val, flag, ierr)
      call check(flag .and. val .eq. 9876543211_MPI_ADDRESS_KIND,
     &  'copied attribute')
      val = -5
      call MPI_COMM_SET_ATTR(comm2, key, val, ierr)
      call check(deletes .eq. 1, 'replaced attribute is deleted')
      call MPI_COMM_GET_ATTR(comm2, key, val, flag, ierr)
      call check(flag .and. val .eq. -5, 'negative attribute')
      call MPI_COMM_FREE(comm2, ierr)
      call check(deletes .eq. 2, 'delete at free')
      call check(comm2 .eq. MPI_COMM_NULL, 'freed communicator')
      call MPI_COMM_DELETE_ATTR(MPI_COMM_SELF, key, ierr)
      call check(deletes .eq. 3, 'delete')
      call MPI_COMM_FREE_KEYVAL(key, ierr)
      call check(key .eq. MPI_KEYVAL_INVALID, 'freed key')

!     predefined callbacks
      extra = 0
      call MPI_COMM_CREATE_KEYVAL(MPI_COMM_DUP_FN,
     &  MPI_COMM_NULL_DELETE_FN, key, extra, ierr)
      val = 77
      call MPI_COMM_SET_ATTR(MPI_COMM_WORLD, key, val, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm2, ierr)
      val = 0
      call MPI_COMM_GET_ATTR(comm2, key, val, flag, ierr)
      call check(flag .and. val .eq. 77, 'dup fn')
      call MPI_COMM_FREE(comm2, ierr)
      call MPI_COMM_DELETE_ATTR(MPI_COMM_WORLD, key, ierr)
      call MPI_COMM_FREE_KEYVAL(key, ierr)

!     INTEGERs of MPI-1
      call MPI_KEYVAL_CREATE(oldcopy, olddrop, oldkey, 55, ierr)
      call MPI_ATTR_PUT(MPI_COMM_SELF, oldkey, -3, ierr)
      call MPI_ATTR_GET(MPI_COMM_SELF, oldkey, value, flag, ierr)
      call check(flag .and. value .eq. -3, 'old attribute')
      call MPI_COMM_DUP(MPI_COMM_SELF, comm2, ierr)
      call MPI_ATTR_GET(comm2, oldkey, value, flag, ierr)
      call check(flag .and. value .eq. -6, 'old copy')
      call MPI_COMM_FREE(comm2, ierr)
      call MPI_ATTR_DELETE(MPI_COMM_SELF, oldkey, ierr)
      call check(deletes .eq. 5, 'old delete')
      call MPI_KEYVAL_FREE(oldkey, ierr)

!     types have attributes too
      call MPI_TYPE_CREATE_KEYVAL(MPI_TYPE_NULL_COPY_FN, drop, key,
     &  1234567890123_MPI_ADDRESS_KIND, ierr)
      call MPI_TYPE_CONTIGUOUS(3, MPI_INTEGER, op, ierr)
      val = 41
      call MPI_TYPE_SET_ATTR(op, key, val, ierr)
      call MPI_TYPE_DUP(op, comm2, ierr)
      call MPI_TYPE_GET_ATTR(comm2, key, val, flag, ierr)
      call check(.not. flag, 'null copy fn')
      call MPI_TYPE_FREE(op, ierr)
      call check(deletes .eq. 6, 'delete of a type')
      call MPI_TYPE_FREE(comm2, ierr)
      call MPI_TYPE_FREE_KEYVAL(key, ierr)

!     an operator of the program
      call MPI_OP_CREATE(product2, .true., op, ierr)
      do i = 1, 4
        a(i) = rank + i
      end do
      call MPI_ALLREDUCE(a, b, 4, MPI_INTEGER, op, MPI_COMM_WORLD,
     &  ierr)
      value = 1
      do i = 0, size - 1
        value = mod(value * (i + 2), 1009)
      end do
      call check(b(2) .eq. value, 'user operator')
      call MPI_OP_COMMUTATIVE(op, flag, ierr)
      call check(flag, 'commutative')
      call MPI_OP_FREE(op, ierr)
      call check(op .eq. MPI_OP_NULL, 'freed operator')

!     an error handler of the program
      call MPI_COMM_CREATE_ERRHANDLER(onerror, handler, ierr)
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, handler, ierr)
      call MPI_SEND(a, 1, MPI_INTEGER, size + 3, 1, MPI_COMM_WORLD,
     &  code)
      call check(errors .eq. 1, 'error handler')
      call MPI_ERROR_CLASS(code, class, ierr)
      call check(class .eq. MPI_ERR_RANK, 'class of a wrong rank')
      call MPI_COMM_CALL_ERRHANDLER(MPI_COMM_WORLD, MPI_ERR_OTHER,
     &  ierr)
      call check(errors .eq. 2, 'called error handler')
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN,
     &  ierr)
      call MPI_BCAST(a, -1, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
      call MPI_ERROR_CLASS(code, class, ierr)
      call check(class .eq. MPI_ERR_COUNT, 'class of a wrong count')
      call check(errors .eq. 2, 'errors return')
      call MPI_ERRHANDLER_FREE(handler, ierr)

      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) print '(A)', 'ok'
      end

      subroutine copy(comm, key, extra, in, out, flag, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, ierr
      integer(kind=MPI_ADDRESS_KIND) extra, in, out
      logical flag
      integer copies, deletes, errors
      common /counted/ copies, deletes, errors
      call check(extra .eq. 1234567890123_MPI_ADDRESS_KIND,
     &  'extra state of copy')
      call check(comm .eq. MPI_COMM_SELF, 'communicator of copy')
      copies = copies + 1
      out = in + 1
      flag = .true.
      ierr = MPI_SUCCESS
      end

      subroutine drop(comm, key, val, extra, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, ierr
      integer(kind=MPI_ADDRESS_KIND) extra, val
      integer copies, deletes, errors
      common /counted/ copies, deletes, errors
      call check(extra .eq. 1234567890123_MPI_ADDRESS_KIND,
     &  'extra state of delete')
      deletes = deletes + 1
      ierr = MPI_SUCCESS
      end

      subroutine oldcopy(comm, key, extra, in, out, flag, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, extra, in, out, ierr
      logical flag
      call check(extra .eq. 55, 'extra state of the old copy')
      out = 2 * in
      flag = .true.
      ierr = MPI_SUCCESS
      end

      subroutine olddrop(comm, key, val, extra, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, val, extra, ierr
      integer copies, deletes, errors
      common /counted/ copies, deletes, errors
      call check(val .eq. -3 .or. val .eq. -6, 'old value')
      call check(extra .eq. 55, 'extra state of the old delete')
      deletes = deletes + 1
      ierr = MPI_SUCCESS
      end

      subroutine product2(in, inout, n, type)
      implicit none
      include 'mpif.h'
      integer n, type, i
      integer in(n), inout(n)
      call check(type .eq. MPI_INTEGER, 'type of the operator')
      do i = 1, n
        inout(i) = mod(in(i) * inout(i), 1009)
      end do
      end

      subroutine onerror(comm, code)
      implicit none
      include 'mpif.h'
      integer comm, code
      integer copies, deletes, errors
      common /counted/ copies, deletes, errors
      call check(comm .eq. MPI_COMM_WORLD, 'communicator of an error')
      errors = errors + 1
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
