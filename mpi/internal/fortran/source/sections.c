/* Array sections as datatypes. */
#include "sections.h"
#include <pthread.h>

static int buffer_error = MPI_ERR_BUFFER, type_error = MPI_ERR_TYPE;

static void name_errors(void) {
    int code;
    if (PMPI_Add_error_code(MPI_ERR_BUFFER, &code) == MPI_SUCCESS) {
        PMPI_Add_error_string(code, "a choice buffer is an array section with gaps, which this call does not take: pass a "
                                    "contiguous array");
        buffer_error = code;
    }
    if (PMPI_Add_error_code(MPI_ERR_TYPE, &code) == MPI_SUCCESS) {
        PMPI_Add_error_string(code, "a choice buffer is an array section with gaps, whose elements are no whole number of "
                                    "items of the datatype, or fewer than the count says");
        type_error = code;
    }
}

static int error_of(int *code) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, name_errors);
    return *code;
}

/* An array that is not allocated has nothing but its address, which is NULL: its bounds are
 * anything. C refuses NULL where the buffer is significant. */
static int has_gaps(const CFI_cdesc_t *d) {
    if (d->base_addr == NULL)
        return 0;
    CFI_index_t next = d->elem_len;
    int gaps = 0;
    for (int i = 0; i < d->rank; i++) {
        if (d->dim[i].extent == 0)
            return 0;
        if (d->dim[i].extent != 1 && d->dim[i].sm != next)
            gaps = 1;
        next *= d->dim[i].extent;
    }
    return gaps;
}

int weft_contiguous(const CFI_cdesc_t *d) { return has_gaps(d) ? error_of(&buffer_error) : MPI_SUCCESS; }

/* elements makes of count items a number of items as large as an element of the array:
 * parts of an element become one item, several elements of one item are taken apart. */
static int elements(MPI_Count *count, MPI_Datatype *type, MPI_Count element, int *made) {
    for (;;) {
        MPI_Count size, lb, extent;
        int e = PMPI_Type_size_c(*type, &size);
        if (e == MPI_SUCCESS)
            e = PMPI_Type_get_extent_c(*type, &lb, &extent);
        if (e != MPI_SUCCESS)
            return e;
        int dense = lb == 0 && extent == size && size > 0;
        if (dense && size == element)
            return MPI_SUCCESS;
        if (dense && element % size == 0 && *count % (element / size) == 0) {
            MPI_Datatype whole;
            if ((e = PMPI_Type_contiguous_c(element / size, *type, &whole)) != MPI_SUCCESS)
                return e;
            if (*made)
                PMPI_Type_free(type);
            *count /= element / size;
            *type = whole;
            *made = 1;
            return MPI_SUCCESS;
        }
        /* A duplicate, or items one after another: look at what they consist of. */
        MPI_Count integers, addresses, counts, types, n = 1;
        int combiner, integer = 1;
        MPI_Datatype old;
        e = PMPI_Type_get_envelope_c(*type, &integers, &addresses, &counts, &types, &combiner);
        if (e != MPI_SUCCESS)
            return e;
        if ((combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) || types != 1 || integers > 1 ||
            counts > 1)
            return error_of(&type_error);
        e = PMPI_Type_get_contents_c(*type, integers, addresses, counts, types, &integer, NULL, &n, &old);
        if (e != MPI_SUCCESS)
            return e;
        if (*made)
            PMPI_Type_free(type);
        *count *= n * integer;
        *type = old;
        /* What get_contents returns is to be freed unless it is predefined. */
        e = PMPI_Type_get_envelope_c(old, &integers, &addresses, &counts, &types, &combiner);
        *made = e == MPI_SUCCESS && combiner != MPI_COMBINER_NAMED;
    }
}

/* first makes a datatype of the first n elements in dimensions 0 to dim of d. */
static int first(const CFI_cdesc_t *d, int dim, MPI_Count n, MPI_Datatype element, MPI_Datatype *made) {
    if (dim < 0)
        return PMPI_Type_dup(element, made);
    MPI_Count below = 1;
    for (int i = 0; i < dim; i++)
        below *= d->dim[i].extent;
    MPI_Count whole = n / below, rest = n % below;
    MPI_Datatype part[2];
    int length[2] = {1, 1};
    MPI_Aint at[2] = {0, whole * d->dim[dim].sm};
    int e, parts = 0;
    if (whole > 0) {
        MPI_Datatype lower;
        if ((e = first(d, dim - 1, below, element, &lower)) != MPI_SUCCESS)
            return e;
        e = PMPI_Type_create_hvector_c(whole, 1, d->dim[dim].sm, lower, made);
        PMPI_Type_free(&lower);
        if (e != MPI_SUCCESS || rest == 0)
            return e;
        part[parts++] = *made;
    }
    if ((e = first(d, dim - 1, rest, element, &part[parts])) == MPI_SUCCESS) {
        if (parts == 0) {
            *made = part[0];
            return MPI_SUCCESS;
        }
        parts++;
        e = PMPI_Type_create_struct(2, length, at, part, made);
    }
    for (int i = 0; i < parts; i++)
        PMPI_Type_free(&part[i]);
    return e;
}

/* move copies the elements of d to memory without gaps, or from there. */
static void move(const CFI_cdesc_t *d, char *packed, int back) {
    CFI_index_t at[CFI_MAX_RANK] = {0};
    for (;;) {
        char *element = d->base_addr;
        for (int i = 0; i < d->rank; i++)
            element += at[i] * d->dim[i].sm;
        if (back)
            memcpy(element, packed, d->elem_len);
        else
            memcpy(packed, element, d->elem_len);
        packed += d->elem_len;
        int i = 0;
        while (i < d->rank && ++at[i] == d->dim[i].extent)
            at[i++] = 0;
        if (i == d->rank)
            return;
    }
}

static size_t elements_of(const CFI_cdesc_t *d) {
    size_t n = 1;
    for (int i = 0; i < d->rank; i++)
        n *= d->dim[i].extent;
    return n;
}

int weft_packed(struct weft_section *s, const CFI_cdesc_t *d, int use) {
    s->buffer = weft_buffer(d->base_addr);
    if (s->buffer != d->base_addr || !has_gaps(d))
        return MPI_SUCCESS;
    if (!(use & WEFT_COPY))
        return error_of(&buffer_error);
    if ((s->copy = malloc(elements_of(d) * d->elem_len)) == NULL)
        return MPI_ERR_NO_MEM;
    move(d, s->copy, 0);
    s->buffer = s->copy;
    if (use & WEFT_BACK)
        s->of = d;
    return MPI_SUCCESS;
}

int weft_section(struct weft_section *s, const CFI_cdesc_t *d, MPI_Count count, int datatype, int use) {
    s->buffer = weft_buffer(d->base_addr);
    s->count = count;
    s->datatype = TO_C(MPI_Datatype, datatype);
    if (count <= 0 || s->buffer != d->base_addr || !has_gaps(d))
        return MPI_SUCCESS;
    MPI_Count own = count, size;
    MPI_Datatype element = s->datatype, section;
    int made = 0, e = PMPI_Type_size_c(element, &size);
    if (e != MPI_SUCCESS || size == 0) /* no data: one item of a section would have some */
        return e;
    e = elements(&own, &element, d->elem_len, &made);
    if (e == type_error && use & WEFT_COPY)
        return weft_packed(s, d, use);
    if (e == MPI_SUCCESS && (size_t)own > elements_of(d))
        e = error_of(&type_error);
    if (e == MPI_SUCCESS && (e = first(d, d->rank - 1, own, element, &section)) == MPI_SUCCESS) {
        if ((e = PMPI_Type_commit(&section)) == MPI_SUCCESS) {
            s->count = 1;
            s->datatype = section;
            s->made = 1;
        } else {
            PMPI_Type_free(&section);
        }
    }
    if (made)
        PMPI_Type_free(&element);
    return e;
}

/* Operations that are under way keep the datatype (MPI-5.0, 5.1.9). */
void weft_section_free(struct weft_section *s) {
    if (s->made)
        PMPI_Type_free(&s->datatype);
    if (s->of != NULL)
        move(s->of, s->copy, 1);
    free(s->copy);
}
